-- Use and fair share of each quota per hour: reported by its scheduler, and recomputed from pods and rules.
--
-- Rows cover only the time in which both are known. A ResourceQuota counts pods from their creation, other systems count allocated amounts.
--
-- revision: 9
-- grain:  cluster, system, resource, flavor, quota, measure, hour_start_at
-- reads:  day.quota_amount, day.quota_reported, day.quota_share, day.quota_unit, day.quota_weighted_share
-- source: day.quota_reported; day.quota_amount and day.quota_share; day.quota_weighted_share
-- columns: cluster, system, resource, flavor, quota, measure, hour_start_at, gpus_per_native, native_unit, observed_seconds,
--          reported_native_hours, recomputed_native_hours
--   measure                  use, fair share, Kueue's weighted share of all resources, or past use of a LocalQueue
--   observed_seconds         s in which both are known
--   recomputed_native_hours  ∫ measure, recomputed from requests of pods and workloads, or by the scheduler's rules
with pair as (
    select
        amount.* similar to '^(cluster|system|resource|flavor|quota)$',
        if(report.field = 'delivered', 'use', 'fair share') as measure,
        date_trunc('hour', amount.start_at) as hour_start_at,
        overlap_ms(amount.start_at, amount.end_at, report.start_at, report.end_at) / 1000 as seconds,
        report.amount_native as reported_native,
        case
            when report.field = 'fair_share' then share.fair_share_native
            when amount.amount_source not in ('pods', 'workloads') then null
            when amount.system = 'kubernetes' then amount.demanded_native
            else amount.delivered_native
        end as recomputed_native
    from day.quota_amount as amount
    left join day.quota_share as share
        using (cluster, system, resource, flavor, quota, start_at)
    inner join day.quota_reported as report
        using (cluster, system, resource, flavor, quota)
    where
        report.field in ('delivered', 'fair_share')
        and report.start_at < amount.end_at
        and report.end_at > amount.start_at
    union all by name
    select
        cluster,
        'kueue' as system,
        resource,
        '' as flavor,
        quota,
        measure,
        unnest(generate_series(date_trunc('hour', start_at), end_at, interval 1 hour)) as hour_start_at,
        overlap_ms(start_at, end_at, hour_start_at, hour_start_at + interval 1 hour) / 1000 as seconds,
        reported_native,
        recomputed_native
    from day.quota_weighted_share
)

select
    pair.* exclude (seconds, reported_native, recomputed_native),
    any_value(unit.gpus_per_native) as gpus_per_native,
    coalesce(any_value(unit.native_unit), 'thousandths') as native_unit,
    sum(pair.seconds)::double as observed_seconds,
    sum(pair.reported_native * pair.seconds / 3600)::double as reported_native_hours,
    sum(pair.recomputed_native * pair.seconds / 3600)::double as recomputed_native_hours
from pair
left join day.quota_unit as unit
    using (system, resource)
where pair.seconds > 0 and not isinf(pair.reported_native) and not isinf(pair.recomputed_native)
group by pair.cluster, pair.system, pair.resource, pair.flavor, pair.quota, pair.measure, pair.hour_start_at
