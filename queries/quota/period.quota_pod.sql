-- Pods of each quota in the window: allocated and idle time by the ledger, and evictions.
--
-- grain:  cluster, system, quota, resource, flavor
-- reads:  facts.quota_hour, facts.quota_pod_hour, period.ledger
-- params: figure_min_coverage_ratio, since_at, until_at
-- columns:
--   lost_gpu_hours           GPU-h allocated to evicted pods in the window; null where none
--   idle_gpu_hours           GPU-h allocated to its pods and idle; null where their use is known for too little of the time
--   idle_borrowed_gpu_hours  the part of them that the quota borrowed on the same day
--   over_quota_gpu_hours     GPU-h of its pods while over quota by nos' rules; null for other systems
with pod as (
    select
        columns('^(cluster|system|quota|resource|flavor|namespace|pod|pod_uid)$'),
        hour_start_at::date as day,
        sum(held_seconds * amount_gpus) / 3600 as allocated_gpu_hours,
        sum(over_quota_seconds * amount_gpus) / 3600 as over_quota_gpu_hours,
        bool_or(max(end_reason) in ('Evicted', 'Preempting', 'Preempted', 'PreemptionByScheduler')) over (
            partition by cluster, system, quota, resource, flavor, namespace, pod, pod_uid
        ) as is_evicted
    from facts.quota_pod_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by cluster, system, quota, resource, flavor, namespace, pod, pod_uid, day
),

allocated as (
    select
        columns('^(cluster|namespace|pod|pod_uid|day)$'),
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), 0) as idle_gpu_hours,
        sum(gpu_hours) filter (where bucket != 'allocated_unmeasured') as seen_gpu_hours,
        sum(gpu_hours) as all_gpu_hours,
        min(first_hour_at) filter (where bucket = 'allocated_idle') as first_idle_at
    from period.ledger
    where pod != '' and bucket in ('allocated_idle', 'effective', 'underutilized', 'active_unmeasured', 'allocated_unmeasured')
    group by all
),

borrowed as (
    select
        columns('^(cluster|system|quota|resource|flavor)$'),
        hour_start_at::date as day,
        -- Allocated while the borrowed amount is known.
        sum(borrowed_native_hours)
        / nullif(sum(delivered_native_hours * coalesce(own_seconds / nullif(observed_seconds, 0), 1)), 0) as borrowed_ratio
    from facts.quota_hour
    where is_in_period(hour_start_at, $since_at, $until_at) and borrowed_native_hours is not null
    group by all
),

-- A pod without a uid in telemetry is the only pod with that name; of several such pods, none counts. If the quota existed for a part of the
-- pod's hours of a day, it gets the same part of the idle hours.
named as (
    select
        pod.* similar to '^(cluster|system|quota|resource|flavor|pod_uid)$',
        allocated.idle_gpu_hours * least(1, pod.allocated_gpu_hours / nullif(allocated.seen_gpu_hours, 0)) as idle_gpu_hours,
        idle_gpu_hours * borrowed.borrowed_ratio as idle_borrowed_gpu_hours,
        allocated.* similar to '^((seen|all)_gpu_hours|first_idle_at)$'
    from allocated
    inner join pod
        using (cluster, namespace, pod, day)
    left join borrowed
        using (cluster, system, quota, resource, flavor, day)
    where allocated.pod_uid in ('', pod.pod_uid)
    qualify allocated.pod_uid != '' or count(*) over (
        partition by allocated.cluster, allocated.namespace, allocated.pod, allocated.pod_uid, pod.system, pod.quota, pod.resource, pod.flavor, day
    ) = 1
)

-- Some hours of a pod may have its uid, and others only its name.
select
    columns('^(cluster|system|quota|resource|flavor)$'),
    nullif(count(distinct pod_uid) filter (where is_evicted), 0) as evicted_pod_count,
    sum(allocated_gpu_hours) filter (where is_evicted) as lost_gpu_hours,
    sum(over_quota_gpu_hours) as over_quota_gpu_hours,
    if(sum(seen_gpu_hours) >= $figure_min_coverage_ratio * sum(all_gpu_hours), sum(columns('^idle_(borrowed_)?gpu_hours$')), null) as "\0",
    min(first_idle_at) as first_idle_at
from (
    from pod
    union all by name
    from named
) as known
group by all
