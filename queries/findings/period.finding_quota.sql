-- Findings: quotas with an unmet guarantee, idle borrowed quota, or unused quota.
--
-- grain:  code, cluster, namespace, detail
-- reads:  facts.pod_wait, facts.quota_hour, facts.quota_pod_hour, period.quota_pod, period.workload_run
-- params: findings_gpu_hours, idle_ratio, since_at, until_at
-- columns:
--   detail  scheduler, quota, resource and flavor
with hour as (
    select
        *,
        rtrim(system || ' ' || quota || ' ' || resource || ' ' || flavor) as detail
    from facts.quota_hour
    where not is_parent and is_in_period(hour_start_at, $since_at, $until_at)
),

governed as (
    select columns('^(cluster|system|quota|namespace)$')
    from facts.quota_pod_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    union all by name
    select
        cluster,
        'kueue' as system,
        cluster_queue as quota,
        namespace
    from period.workload_run
),

-- The namespace of a quota: its own, or the only one of all its pods and workloads.
home as (
    select * replace (min(namespace) as namespace)
    from governed
    group by all
    having min(namespace) = max(namespace)
),

-- Namespaces with pending pods, also pods that wait for devices of claims that the quota does not count.
waited as (
    select distinct
        cluster,
        namespace
    from facts.pod_wait
    where start_at < $until_at and end_at > $since_at and end_at > start_at + interval 1 minute
),

summed as (
    select
        columns('^(cluster|system|quota|resource|flavor|detail)$'),
        sum(guaranteed_native_hours * gpus_per_native) as guaranteed,
        sum(demanded_native_hours * gpus_per_native) as demanded,
        -- Allocated while the borrowed amount is known.
        sum(delivered_native_hours * gpus_per_native * coalesce(own_seconds / nullif(observed_seconds, 0), 1)) filter (
            where borrowed_native_hours is not null
        ) as delivered,
        sum(borrowed_native_hours * gpus_per_native) as borrowed,
        sum(unmet_native_hours * gpus_per_native) as unmet,
        sum(violated_native_hours * gpus_per_native) as violated,
        sum(demand_seconds) = sum(observed_seconds) as is_demand_known,
        -- Hours of an unlimited guarantee have no guaranteed amount. A request beyond the guarantee does not use the guarantee of another time.
        sum(least(honourable_native_hours, guaranteed_native_hours) * gpus_per_native) filter (where guaranteed_native_hours is not null) as requested,
        min(hour_start_at) filter (where guaranteed_native_hours is not null) as first_hour_at,
        min(hour_start_at) filter (where violated_native_hours > 0) as first_violated_at
    from hour
    group by cluster, system, quota, resource, flavor, detail
),

found as (
    select
        'GR501' as code,
        columns('^(cluster|system|quota|detail)$'),
        violated as gpu_hours,
        'medium' as confidence,
        format(
            '{:,.1f} of {} guaranteed GPU-hours not delivered, {:,.1f} requested; free or borrowed GPUs could have covered {:,.1f}',
            unmet, coalesce(format('{:,.1f}', guaranteed), 'unlimited'), demanded, violated
        ) as evidence,
        first_violated_at as first_seen_at
    from summed
    where round(violated, 9) >= $findings_gpu_hours and violated > 0
    union all by name
    select
        'GR502' as code,
        summed.* similar to '^(cluster|system|quota|detail)$',
        pod.idle_borrowed_gpu_hours as gpu_hours,
        'low' as confidence,
        format(
            '{:,.1f} of {:,.1f} allocated GPU-hours borrowed; its pods were idle for {:,.1f}', summed.borrowed, summed.delivered, pod.idle_gpu_hours
        ) as evidence,
        pod.first_idle_at as first_seen_at
    from summed
    inner join period.quota_pod as pod
        using (cluster, system, quota, resource, flavor)
    where round(pod.idle_borrowed_gpu_hours, 9) >= $findings_gpu_hours and pod.idle_borrowed_gpu_hours > 0
    union all by name
    select
        'GR503' as code,
        columns('^(cluster|system|quota|detail)$'),
        guaranteed - requested as gpu_hours,
        'high' as confidence,
        format('{:,.1f} GPU-hours guaranteed, {:,.1f} of them requested', guaranteed, requested) as evidence,
        first_hour_at as first_seen_at
    from summed
    where is_demand_known and guaranteed > requested and round(guaranteed - requested, 9) >= $findings_gpu_hours and round(requested - (1 - $idle_ratio) * guaranteed, 9) <= 0
)

select
    found.* exclude (system, quota),
    coalesce(home.namespace, if(found.system in ('nos', 'scheduler-plugins'), split_part(found.quota, '/', 1), '')) as namespace
from found
left join home
    using (cluster, system, quota)
left join waited
    on
        found.code = 'GR503'
        and found.cluster = waited.cluster
        and coalesce(home.namespace, split_part(found.quota, '/', 1)) = waited.namespace
where waited.cluster is null
