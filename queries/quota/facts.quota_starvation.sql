-- Uninterrupted times of each quota below its guarantee in spite of demand.
--
-- revision: 18
-- grain:  cluster, system, resource, flavor, quota, start_at
-- reads:  day.quota_step
-- columns: cluster, system, resource, flavor, quota, start_at, end_at, is_ended, is_reclaim, unmet_native_hours, violated_native_hours
--   end_at                 UTC, end of the shortage, or of known time
--   unmet_native_hours     ∫ shortage
--   violated_native_hours  ∫ part of the shortage that free devices and amounts borrowed by others could cover; null where undecided
with marked as (
    select
        *,
        epoch_ms(end_at - start_at) / 3600000 as hours,
        coalesce(lead(start_at) over (
            partition by cluster, system, resource, flavor, quota
            order by start_at
        ) = end_at, false) as is_followed
    from day.quota_step
    where unmet_native is not null and not is_parent
    qualify unmet_native > 0
)

select
    columns('^(cluster|system|resource|flavor|quota)$'),
    min(start_at) as start_at,
    max(end_at) as end_at,
    arg_max(is_followed, start_at) as is_ended,
    bool_or(others_borrowed_native > 0) as is_reclaim,
    sum(unmet_native * hours) as unmet_native_hours,
    sum(violated_native * hours) as violated_native_hours
from numbered_runs(marked, (cluster, system, resource, flavor, quota))
group by cluster, system, resource, flavor, quota, run_number
