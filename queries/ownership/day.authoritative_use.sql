-- Holders of each device over time as Kubernetes reports them, from the best source for each pod.
--
-- Resource claims come before Koordinator's annotation; the annotation comes before the kubelet's checkpoint and PodResources. A source counts for a
-- pod only if telemetry has all devices that it reports; otherwise a device would be lost.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.reported_use, facts.claim_use
-- columns:
--   source         dra-claim, koordinator, kubelet-checkpoint or pod-resources
--   claims         resource claims of the device, namespace/name, sorted
with unfound as (
    select distinct
        cluster,
        pod_uid
    from facts.claim_use
    where not is_admin_access and (device_uuid = '' or gpu_instance_id is null)
),

authoritative as (
    select
        use.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at)$',
        max(use.end_at) as end_at,
        'dra-claim' as source,
        1 as rank,
        list_sort(list(distinct use.namespace || '/' || use.claim)) as claims,
        bool_or(use.is_ambiguous) as is_ambiguous
    from facts.claim_use as use
    anti join unfound
        using (cluster, pod_uid)
    -- Other tables already have the allocations that are known only from labels. Admin access allocates nothing.
    where use.claim_uid != '' and not use.is_admin_access
    group by all
    union all by name
    select
        * exclude (source),
        source,
        case source when 'koordinator' then 2 when 'kubelet-checkpoint' then 3 else 4 end as rank,
        [] as claims,
        false as is_ambiguous
    from day.reported_use
),

-- Several requests of a claim, and several claims of a pod, may have shares of one device: the device is allocated once.
best as (
    select worse.*
    from authoritative as worse
    anti join authoritative as better
        on
            worse.cluster = better.cluster
            and worse.pod_uid = better.pod_uid
            and worse.rank > better.rank
            and worse.start_at < better.end_at
            and worse.end_at > better.start_at
),

step as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$'),
        min(start_at) as start_at,
        max(end_at) as end_at,
        source,
        list_sort(list_distinct(flatten(list(claims)))) as claims,
        bool_or(is_ambiguous) as is_ambiguous
    from numbered_runs(best, (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, source))
    group by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, source, run_number
)

select
    *,
    min(start_at) over holder as life_start_at,
    max(end_at) over holder as life_end_at
from step
window holder as (partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container)
