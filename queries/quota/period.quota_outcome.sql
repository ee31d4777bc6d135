-- Totals per quota over the window, for the comparison with a simulated change.
--
-- A figure that is known for only a part of the time is null: totals of different times are not comparable.
--
-- grain:  cluster, system, resource, flavor, quota
-- reads:  facts.quota_hour, facts.quota_pod_hour
-- columns:
--   observed_seconds            s in which its terms and its allocated amount are known
--   guaranteed_gpu_hours        GPU-h guaranteed; null where the system has no guarantees
--   demanded_gpu_hours          GPU-h requested; null where unknown
--   over_quota_gpu_hours        GPU-h of its pods while they were over quota by nos' rules; null for other systems
with hour as (
    select
        columns('^(cluster|system|resource|flavor|quota)$'),
        any_value(gpus_per_native) as gpus_per_native,
        sum(observed_seconds) as observed_seconds,
        -- Sums of seconds are exact to a millisecond, so a difference below half of one is 0.
        if(sum(observed_seconds - guaranteed_seconds) < 0.0005, sum(guaranteed_native_hours), null) as guaranteed,
        if(sum(observed_seconds - demand_seconds) < 0.0005, sum(demanded_native_hours), null) as demanded,
        sum(delivered_native_hours) as delivered,
        if(sum(observed_seconds - own_seconds) < 0.0005, sum(borrowed_native_hours), null) as borrowed,
        if(sum(observed_seconds - lent_seconds) < 0.0005, sum(lent_native_hours), null) as lent,
        sum(observed_seconds - share_seconds) < 0.0005 as is_share_known,
        if(is_share_known, sum(fair_share_native_hours), null) as fair_share,
        if(is_share_known, sum(over_entitlement_native_hours), null) as over_entitlement,
        sum(observed_seconds - unmet_seconds) < 0.0005 as is_unmet_known,
        if(is_unmet_known, sum(unmet_native_hours), null) as unmet,
        if(sum(observed_seconds - violated_known_seconds) < 0.0005, sum(violated_native_hours), null) as violated,
        if(is_unmet_known, sum(honoured_native_hours) / nullif(sum(honourable_native_hours), 0), null) as honoured_ratio
    from facts.quota_hour
    group by all
),

pod as (
    select
        columns('^(cluster|system|resource|flavor|quota)$'),
        sum(over_quota_seconds * amount_gpus) / 3600 as over_quota_gpu_hours,
        count(distinct pod_uid) filter (where exposed_seconds > 0) as exposed_pod_count
    from facts.quota_pod_hour
    group by all
)

select
    hour.* similar to '^(cluster|system|resource|flavor|quota|observed_seconds)$',
    columns('^(guaranteed|demanded|delivered|borrowed|lent|fair_share|over_entitlement|unmet|violated)$') * hour.gpus_per_native as '\1_gpu_hours',
    hour.honoured_ratio as guarantee_honoured_ratio,
    if(hour.system = 'nos', coalesce(pod.over_quota_gpu_hours, 0), null) as over_quota_gpu_hours,
    if(hour.system in ('nos', 'scheduler-plugins'), coalesce(pod.exposed_pod_count, 0), null) as exposed_pod_count
from hour
left join pod
    using (cluster, system, resource, flavor, quota)
