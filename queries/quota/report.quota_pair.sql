-- Pairs of a quota below its guarantee and a quota that borrows at the same time. Inferred: no system records it.
--
-- grain:  cluster, scheduler, resource, flavor, quota, borrower
-- reads:  facts.quota_pair_hour
-- params: since_at, until_at
-- columns: cluster, scheduler, resource, flavor, quota, borrower, method, together_seconds, contested_gpu_hours, contested_gpus_max,
--          contested_native_hours, native_unit
--   quota                   quota that has less than its guarantee and its requests
--   borrower                quota that borrows at the same time
--   method                  inferred: the shortage in proportion to what each borrower borrows
--   contested_native_hours  contested_gpu_hours in the resource's own unit
select
    cluster,
    system as scheduler,
    columns('^(resource|flavor|quota|borrower)$'),
    'inferred' as method,
    sum(together_seconds) as together_seconds,
    sum(contested_native_hours * gpus_per_native) as contested_gpu_hours,
    max(contested_native_max * gpus_per_native) as contested_gpus_max,
    sum(contested_native_hours) as contested_native_hours,
    any_value(native_unit) as native_unit
from facts.quota_pair_hour
where is_in_period(hour_start_at, $since_at, $until_at)
group by cluster, system, resource, flavor, quota, borrower
