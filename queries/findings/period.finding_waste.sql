-- Findings: GPU-hours without work, such as allocated and idle, reserved and idle, used by an unknown holder, fragmented, unavailable.
--
-- Read from the ledger. Allocated time without data on activity counts neither way; where that is more than half of the allocated time
-- (figure_min_coverage), there is no finding. Labels come and go a sampling step after their pod, so a GPU that changes
-- hands often is active for minutes without a name: unnamed_ratio of its time is left to that.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.ownership, period.ledger
-- params: figure_min_coverage_ratio, findings_gpu_hours, idle_ratio, unnamed_ratio
-- source: period.ledger; how sure its holder is: facts.ownership
-- columns:
--   namespace    namespace of the workload; '' where it is about a node or GPU
--   pod          its pod; '' likewise
--   pod_uid      its uid; '' likewise, and where unknown
--   container    its container; '' where it is about all of the pod, or about a node or GPU
--   node_name    node; several are listed; '' where it is about more
--   device_uuid  UUID of the physical GPU; '' where it is about several
--   gpu_model    model; several are listed
with held as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        device_uuid,
        gpu_instance_id,
        max(node_name) as node_name,
        max(gpu_model) as gpu_model,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), 0) as idle_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_unmeasured'), 0) as unknown_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket in (
            'allocated_idle', 'effective', 'underutilized', 'active_unmeasured'
        )), 0) as told_gpu_hours,
        min(first_hour_at) filter (where bucket = 'allocated_idle') as first_seen_at
    from period.ledger
    where pod != '' and bucket != 'reserved_idle'
    group by cluster, namespace, pod, pod_uid, device_uuid, gpu_instance_id
),

sure as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        max(certainty != 'certain') as is_unsure
    from facts.ownership
    group by cluster, namespace, pod, pod_uid
),

holder as (
    select
        held.cluster,
        held.namespace,
        held.pod,
        held.pod_uid,
        string_agg(distinct held.node_name, ', ' order by held.node_name) as node_name,
        string_agg(distinct held.gpu_model, ', ' order by held.gpu_model) as gpu_model,
        count(*) as device_count,
        sum(held.idle_gpu_hours) as idle_gpu_hours,
        sum(held.told_gpu_hours) as told_gpu_hours,
        sum(held.idle_gpu_hours) >= $idle_ratio * sum(held.told_gpu_hours) as is_idle,
        sum(held.told_gpu_hours) >= $figure_min_coverage_ratio * sum(held.told_gpu_hours + held.unknown_gpu_hours) as is_known,
        count(*) filter (where held.idle_gpu_hours >= $idle_ratio * held.told_gpu_hours) as idle_count,
        sum(held.idle_gpu_hours) filter (where held.idle_gpu_hours >= $idle_ratio * held.told_gpu_hours) as idle_device_gpu_hours,
        min(held.first_seen_at) as first_seen_at,
        if(coalesce(bool_or(sure.is_unsure), false), 'medium', 'high') as confidence
    from held
    left join sure
        using (cluster, namespace, pod, pod_uid)
    where held.told_gpu_hours > 0
    group by held.cluster, held.namespace, held.pod, held.pod_uid
),

found as (
    select
        'GR101' as code,
        cluster,
        namespace,
        pod,
        pod_uid,
        node_name,
        gpu_model,
        idle_gpu_hours as gpu_hours,
        confidence,
        format(
            'idle for {:.1f} of {:.1f} GPU-hours ({:.0f} %) on {} GPU{}',
            idle_gpu_hours, told_gpu_hours, 100 * idle_gpu_hours / told_gpu_hours, device_count, if(device_count = 1, '', 's')
        ) as evidence,
        first_seen_at
    from holder
    where is_idle and is_known and idle_gpu_hours >= $findings_gpu_hours
    union all by name
    select
        'GR102' as code,
        cluster,
        namespace,
        pod,
        pod_uid,
        node_name,
        gpu_model,
        idle_device_gpu_hours as gpu_hours,
        confidence,
        format(
            'idle on {} of {} GPUs, for {:.1f} GPU-hours; at work on others', idle_count, device_count, idle_device_gpu_hours
        ) as evidence,
        first_seen_at
    from holder
    where
        not is_idle and is_known and idle_count between 1 and device_count - 1 and idle_device_gpu_hours >= $findings_gpu_hours
    union all by name
    select
        'GR103' as code,
        cluster,
        namespace,
        pod,
        pod_uid,
        string_agg(distinct node_name, ', ' order by node_name) as node_name,
        string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
        sum(gpu_hours) as gpu_hours,
        'high' as confidence,
        format(
            'reserved for {:.1f} GPU-hours on {} GPU{}, no container', sum(gpu_hours), count(distinct device_uuid), if(count(distinct device_uuid) = 1, '', 's')
        ) as evidence,
        min(first_hour_at) as first_seen_at
    from period.ledger
    where bucket = 'reserved_idle'
    group by cluster, namespace, pod, pod_uid
    having sum(gpu_hours) >= $findings_gpu_hours
    union all by name
    select
        'GR105' as code,
        cluster,
        node_name,
        device_uuid,
        max(gpu_model) as gpu_model,
        sum(gpu_hours) filter (where cause = 'nobody_named') as gpu_hours,
        'medium' as confidence,
        format(
            'active for {:.1f} of {:.1f} GPU-hours in which nobody is named', sum(gpu_hours) filter (where cause = 'nobody_named'), sum(gpu_hours)
        ) as evidence,
        min(first_hour_at) filter (where cause = 'nobody_named') as first_seen_at
    from period.ledger
    group by cluster, node_name, device_uuid
    having sum(gpu_hours) filter (where cause = 'nobody_named') >= greatest($findings_gpu_hours, $unnamed_ratio * sum(gpu_hours))
    union all by name
    select
        if(cause = 'unsliced', 'GR601', 'GR602') as code,
        cluster,
        node_name,
        string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
        sum(gpu_hours) as gpu_hours,
        if(cause in ('unsliced', 'fragmented', 'larger_than_any_node'), 'high', 'medium') as confidence,
        format(
            '{:.1f} GPU-hours on {} GPU{}: {}', sum(gpu_hours), count(distinct device_uuid), if(count(distinct device_uuid) = 1, '', 's'), cause
        ) as evidence,
        min(first_hour_at) as first_seen_at,
        cause as detail
    from period.ledger
    where bucket = 'fragmented'
    group by cluster, node_name, cause
    having sum(gpu_hours) >= $findings_gpu_hours
    union all by name
    select
        'GR604' as code,
        cluster,
        node_name,
        string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
        sum(gpu_hours) as gpu_hours,
        'high' as confidence,
        format(
            '{} for {:.1f} GPU-hours on {} GPU{}', cause, sum(gpu_hours), count(distinct device_uuid), if(count(distinct device_uuid) = 1, '', 's')
        ) as evidence,
        min(first_hour_at) as first_seen_at,
        cause as detail
    from period.ledger
    where bucket = 'unavailable'
    group by cluster, node_name, cause
    having sum(gpu_hours) >= $findings_gpu_hours
)

select
    code,
    coalesce(detail, '') as detail,
    cluster,
    coalesce(namespace, '') as namespace,
    coalesce(pod, '') as pod,
    coalesce(pod_uid, '') as pod_uid,
    '' as container,
    coalesce(node_name, '') as node_name,
    coalesce(device_uuid, '') as device_uuid,
    '' as gpu_instance_id,
    gpu_model,
    gpu_hours,
    confidence,
    evidence,
    first_seen_at
from found
