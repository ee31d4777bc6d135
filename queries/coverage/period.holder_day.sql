-- Time per day with known allocation of each GPU, unallocated time included.
--
-- On a day on which a source names a holder of a GPU or its instances, the rest of its observed time is unallocated. Without a name all day, all of
-- it is unallocated, unless labels are missing: the GPU was active for more than 1 % of the time (engine activity or utilization), or
-- kube-state-metrics lists pods with accelerators on its node and the node names none. Where no source of the cluster names a pod or lists pods all
-- day, the allocation of every GPU is unknown: an idle one may be allocated. All are unallocated only if pods were named before and no GPU is active.
--
-- grain:  cluster, device_uuid, day
-- reads:  facts.device_day, facts.expected_device, facts.node_day, facts.ownership, period.device_day
-- source: facts.ownership against activity and against kube-state-metrics; dcgm-exporter 27, 127, 138, 151 (labels that are missing)
-- columns:
--   observed_seconds       s in which its allocation is known: a holder, or unallocated
--   lacking_seconds        s in which it had data and its allocation is unknown
--   active_seconds         s x activity in lacking_seconds; of a MIG instance, times its part of the GPU
--   cause                  no_pod_labels; no_permission where no series of the cluster names a pod; '' for none
with gpu as (
    select
        columns('^(cluster|device_uuid|day)$'),
        max(node_name) as node_name,
        max(observed_seconds) as device_seconds,
        max(expected_seconds) - max(observed_seconds) as unseen_seconds
    from period.device_day
    group by all
),

activity as (
    select
        columns('^(cluster|device_uuid|day)$'),
        sum(active_seconds) as active_seconds,
        greatest(
            sum(active_seconds) filter (where gpu_instance_id = ''),
            sum(active_seconds * partition_ratio(gpu_instance_profile, gpu_model)) filter (where gpu_instance_id != '')
        ) as active_gpu_seconds,
        sum(unreported_seconds) >= 0.99 * sum(observed_seconds) as is_unreported
    from facts.device_day
    group by all
),

named as (
    select distinct gpu.* similar to '^(cluster|device_uuid|day|node_name)$'
    from gpu
    inner join facts.ownership
        using (cluster, device_uuid)
    where ownership.start_at < gpu.day + interval 1 day and ownership.end_at > gpu.day
),

named_node as (
    select columns('^(cluster|day|node_name)$')
    from named
    group by all
),

named_cluster as (
    select
        cluster,
        day,
        count(*) as named_node_count
    from named_node
    group by all
),

node as (
    select
        columns('^(cluster|node_name|day)$'),
        max(accelerator_pod_count) as accelerator_pod_count
    from facts.node_day
    group by all
),

-- Days without data of Kubernetes; also whether an exporter that named pods before has no pod to name.
unlisted as (
    select
        gpu.* similar to '^(cluster|day)$',
        coalesce(bool_or(expected.is_named), false) and max(coalesce(activity.active_seconds, 0) / nullif(gpu.device_seconds, 0)) <= 0.01 as is_idle
    from gpu
    left join activity
        using (cluster, device_uuid, day)
    left join facts.expected_device as expected
        using (cluster, device_uuid, day)
    anti join node
        on gpu.cluster = node.cluster and gpu.day = node.day and node.accelerator_pod_count is not null
    group by all
),

judged as (
    select
        gpu.*,
        coalesce(activity.active_gpu_seconds, 0) as active_seconds,
        if(unlisted.day is null, coalesce(node.accelerator_pod_count, 0), null) as accelerator_pod_count,
        coalesce(named_cluster.named_node_count, 0) as named_node_count,
        named.device_uuid is null and gpu.device_seconds > 0 and (
            coalesce(activity.active_seconds, 0) > 0.01 * gpu.device_seconds
            or (named_node.node_name is null and coalesce(node.accelerator_pod_count, 0) > 0)
            or (
                named_cluster.cluster is null and node.accelerator_pod_count is null
                and (coalesce(activity.is_unreported, false) or not coalesce(unlisted.is_idle, true))
            )
        ) as is_unnamed
    from gpu
    left join named_node
        using (cluster, node_name, day)
    left join node
        using (cluster, node_name, day)
    left join activity
        using (cluster, device_uuid, day)
    left join named
        using (cluster, device_uuid, day)
    left join named_cluster
        using (cluster, day)
    left join unlisted
        using (cluster, day)
)

select
    * exclude (device_seconds, unseen_seconds, is_unnamed) replace (if(is_unnamed, active_seconds, 0) as active_seconds),
    if(is_unnamed, 0, device_seconds) as observed_seconds,
    round(unseen_seconds, 3) as unseen_seconds,
    if(is_unnamed, device_seconds, 0) as lacking_seconds,
    case
        when not is_unnamed then ''
        when named_node_count = 0 then 'no_permission'
        else 'no_pod_labels'
    end as cause
from judged
