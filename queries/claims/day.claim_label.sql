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
        max(columns('^(driver|pool)$')),
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
)

-- Ids of instances are used again, so only descriptions of the label's own time count.
select
    named.* exclude (device),
    coalesce(
        nullif(named.device, ''), named.device_uuid || if(named.gpu_instance_id = '', '', '/' || named.gpu_instance_id)
    ) as device,
    coalesce(max(place.node_name), '') as node_name,
    coalesce(max(place.gpu_instance_profile), '') as profile,
    coalesce(max(place.gpu_model), '') as gpu_model
from named
left join day.device_run as place
    on
        named.cluster = place.cluster
        and named.device_uuid = place.device_uuid
        and named.gpu_instance_id = place.gpu_instance_id
        and named.start_at < place.end_at
        and named.end_at > place.start_at
group by all
