-- Containers that held a device by a resource claim, from telemetry: the exporter's labels, or kube-state-metrics' claims of pods.
--
-- The exporter may name the container's claim (dcgm-exporter's dra_* labels). Otherwise, a pod with one claim and no other GPU request has its
-- devices by this claim. If the name of a claim is used again, a label means the claim of its time.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, claim, start_at
-- reads:  day.claim_series, day.device_run, day.owner_run, day.pod_request, lake.series
-- source: dcgm-exporter dra_claim_name, dra_driver_name, dra_pool_name, dra_device_name; kube_pod_resourceclaim_info
with reported as (
    select distinct
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$'),
        labels['dra_claim_name'] as claim,
        coalesce(labels['dra_driver_name'], '') as driver,
        coalesce(labels['dra_pool_name'], '') as pool,
        coalesce(labels['dra_device_name'], '') as device
    from lake.series
    where pod != '' and device_uuid != '' and labels['dra_claim_name'] is not null
),

-- Series of the whole board may also name the device of one instance.
exporter as (
    select
        columns('^(cluster|device_uuid|namespace|pod|pod_uid|container|claim)$'),
        max(driver) as driver,
        max(pool) as pool,
        if(count(distinct device) = 1, max(device), '') as device
    from reported
    group by cluster, device_uuid, namespace, pod, pod_uid, container, claim
),

sole as (
    select
        claim.* similar to '^(cluster|namespace|pod|pod_uid)$',
        min(claim.claim) as claim,
        min(claim.start_at) as start_at,
        max(claim.end_at) as end_at
    from day.claim_series as claim
    anti join day.pod_request
        using (cluster, pod_uid)
    group by claim.cluster, claim.namespace, claim.pod, claim.pod_uid
    having count(distinct claim.claim) = 1
),

named as (
    select
        run.*,
        exporter.* similar to '^(claim|driver|pool|device)$'
    from day.owner_run as run
    inner join exporter
        using (cluster, device_uuid, namespace, pod, container)
    where (run.pod_uid = exporter.pod_uid or '' in (run.pod_uid, exporter.pod_uid))
    union all by name
    select
        run.* replace (
            sole.pod_uid as pod_uid,
            greatest(run.start_at, sole.start_at) as start_at,
            least(run.end_at, sole.end_at) as end_at
        ),
        sole.claim,
        '' as driver,
        '' as pool
    from day.owner_run as run
    inner join sole
        using (cluster, namespace, pod)
    anti join exporter
        using (cluster, device_uuid, namespace, pod)
    where
        run.pod_uid in ('', sole.pod_uid)
        and run.start_at < sole.end_at
        and run.end_at > sole.start_at
),

place as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        max(node_name) as node_name,
        max(gpu_instance_profile) as profile,
        max(gpu_model) as gpu_model
    from day.device_run
    group by cluster, device_uuid, gpu_instance_id
)

select
    named.* exclude (start_at, end_at, device),
    coalesce(
        nullif(named.device, ''), named.device_uuid || if(named.gpu_instance_id = '', '', '/' || named.gpu_instance_id)
    ) as device,
    coalesce(columns(place.* exclude (cluster, device_uuid, gpu_instance_id)), ''),
    named.start_at,
    named.end_at
from named
left join place
    using (cluster, device_uuid, gpu_instance_id)
