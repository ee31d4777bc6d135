-- Who was short of what it was guaranteed while who borrowed, hour by hour: inferred, for no system records it.
--
-- What a quota is short of is laid at the borrowers' doors in proportion to what each borrows, up to all that they borrow.
--
-- grain:  cluster, system, resource, flavor, quota, borrower, hour_start_at
-- reads:  facts.quota_step
-- params:
-- source: facts.quota_step
-- columns:
--   cluster                 cluster name
--   system                  quota system
--   resource                resource as the quota names it
--   flavor                  Kueue's flavor, or ''
--   quota                   quota that was short
--   borrower                quota that borrowed
--   hour_start_at           UTC hour
--   gpus_per_native         GPUs per unit
--   native_unit             the resource's own unit
--   together_seconds        s in which the one was short while the other borrowed
--   contested_native_hours  ∫ the borrower's part of what the quota was short of
--   contested_native_max    largest part at one instant
with pair as (
    select
        starved.cluster,
        starved.system,
        starved.resource,
        starved.flavor,
        starved.quota,
        borrower.quota as borrower,
        starved.start_at,
        starved.gpus_per_native,
        starved.native_unit,
        epoch_ms(starved.end_at - starved.start_at) / 1000 as seconds,
        least(starved.unmet_native, starved.others_borrowed_native)
        * borrower.borrowed_native / starved.others_borrowed_native as contested_native
    from facts.quota_step as starved
    inner join facts.quota_step as borrower
        on
            starved.cluster = borrower.cluster
            and starved.system = borrower.system
            and starved.resource = borrower.resource
            and starved.flavor = borrower.flavor
            and starved.pool = borrower.pool
            and starved.start_at = borrower.start_at
            and starved.quota != borrower.quota
    where
        starved.unmet_native > 0
        and borrower.borrowed_native > 0
        and not starved.is_parent
        and not borrower.is_parent
)

select
    cluster,
    system,
    resource,
    flavor,
    quota,
    borrower,
    date_trunc('hour', start_at) as hour_start_at,
    any_value(gpus_per_native) as gpus_per_native,
    any_value(native_unit) as native_unit,
    sum(seconds)::double as together_seconds,
    sum(contested_native * seconds) / 3600 as contested_native_hours,
    max(contested_native) as contested_native_max
from pair
group by cluster, system, resource, flavor, quota, borrower, date_trunc('hour', start_at)
