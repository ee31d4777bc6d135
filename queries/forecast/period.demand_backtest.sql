-- Error of the forecast one to seven days ahead, on each day for which it could have been made from what was known then.
--
-- From changes over a week that were known on the day of the forecast, seven of them at least; beside it the value of that day, carried on.
--
-- grain:  cluster, gpu_model, day, lead_day_count
-- reads:  period.demand_day
-- params: until_at
-- source: period.demand_day
-- columns:
--   lead_day_count      days between forecast and day
--   carried_gpu_hours   h on the day of the forecast
--   expected_gpu_hours  h that the forecast would have said
--   is_within           whether what came lay between low and high
with past as (
    select *
    from period.demand_day
    where is_counted and day + interval 1 day <= $until_at
),

weekly as (
    select
        past.*,
        past.allocated_gpu_hours - before.allocated_gpu_hours as change_gpu_hours
    from past
    inner join past as before
        using (cluster, gpu_model)
    where past.day = before.day + 7
),

known as (
    select
        origin.* similar to '^(cluster|gpu_model|day|allocated_gpu_hours)$',
        quantile_cont(weekly.change_gpu_hours, [0.1, 0.5, 0.9]) as changes
    from past as origin
    inner join weekly
        using (cluster, gpu_model)
    where weekly.day <= origin.day
    group by origin.cluster, origin.gpu_model, origin.day, origin.allocated_gpu_hours
    having count(*) >= 7
)

select
    past.* exclude (device_count, usable_gpu_hours, is_counted),
    ahead.lead_day_count,
    known.allocated_gpu_hours as carried_gpu_hours,
    greatest(0, before.allocated_gpu_hours + known.changes[2]) as expected_gpu_hours,
    past.allocated_gpu_hours between before.allocated_gpu_hours + known.changes[1] and before.allocated_gpu_hours + known.changes[3] as is_within
from past
cross join range(1, 8) as ahead (lead_day_count)
inner join known
    using (cluster, gpu_model)
inner join past as before
    using (cluster, gpu_model)
where
    past.day = known.day + ahead.lead_day_count::integer
    and past.day = before.day + 7
