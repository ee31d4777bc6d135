-- Quotas below their guarantee and quotas that borrow at the same time, per hour: inferred, no system records it.
--
-- A quota's shortage is split among the borrowers in proportion to their borrowed amounts, up to the total borrowed amount.
--
-- revision: 12
-- grain:  cluster, system, resource, flavor, quota, borrower, hour_start_at
-- reads:  day.quota_lending, day.quota_step
-- columns: cluster, system, resource, flavor, quota, borrower, hour_start_at, gpus_per_native, native_unit, together_seconds,
--          contested_native_hours, contested_native_max
--   quota                   quota with a shortage
--   borrower                quota that borrowed
--   contested_native_hours  ∫ the borrower's part of the quota's shortage
with starved as (
    from day.quota_step
    where unmet_native > 0 and others_borrowed_native > 0 and not is_parent
),

-- In a tree of cohorts, only a part of what another queue borrows may belong to this queue.
borrowed as (
    select
        starved.*,
        borrower.quota as borrower,
        borrower.borrowed_native as part_native
    from starved
    anti join day.quota_lending
        using (cluster, system, resource, flavor, quota, start_at)
    inner join day.quota_step as borrower
        using (cluster, system, resource, flavor, pool, start_at)
    where
        starved.quota != borrower.quota
        and borrower.borrowed_native > 0 and not borrower.is_parent
    union all by name
    select
        starved.*,
        unnest(map_keys(lending.borrowers)) as borrower,
        unnest(map_values(lending.borrowers)) as part_native
    from starved
    inner join day.quota_lending as lending
        using (cluster, system, resource, flavor, quota, start_at)
),

pair as (
    select
        *,
        epoch_ms(end_at - start_at) / 1000 as seconds,
        least(unmet_native, others_borrowed_native) * part_native / others_borrowed_native as contested_native
    from borrowed
)

select
    columns('^(cluster|system|resource|flavor|quota|borrower)$'),
    date_trunc('hour', start_at) as hour_start_at,
    any_value(gpus_per_native) as gpus_per_native,
    any_value(native_unit) as native_unit,
    sum(seconds)::double as together_seconds,
    sum(contested_native * seconds) / 3600 as contested_native_hours,
    max(contested_native) as contested_native_max
from pair
group by cluster, system, resource, flavor, quota, borrower, date_trunc('hour', start_at)
