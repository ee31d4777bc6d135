-- Error of the forecast a week ahead, on each day for which it could have been made from what was known then.
--
-- From changes over a week that were known seven days before, seven of them at least.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_day
-- params: until_at
-- source: period.demand_day
-- columns:
--   naive_gpu_hours     h a week before
--   expected_gpu_hours  h that the forecast would have said
--   is_within           whether what came lay between low and high
with past as (
    select *
    from period.demand_day
    where is_counted and day + interval 1 day <= $until_at
),

weekly as (
    select
        past.cluster,
        past.gpu_model,
        past.day,
        past.held_gpu_hours,
        before.held_gpu_hours as naive_gpu_hours,
        past.held_gpu_hours - before.held_gpu_hours as change_gpu_hours
    from past
    inner join past as before
        on
            past.cluster = before.cluster
            and past.gpu_model = before.gpu_model
            and past.day = before.day + 7
),

known as (
    select
        weekly.* exclude (change_gpu_hours),
        quantile_cont(known_then.change_gpu_hours, 0.1) as low_change_gpu_hours,
        quantile_cont(known_then.change_gpu_hours, 0.5) as change_gpu_hours,
        quantile_cont(known_then.change_gpu_hours, 0.9) as high_change_gpu_hours
    from weekly
    inner join weekly as known_then
        on
            weekly.cluster = known_then.cluster
            and weekly.gpu_model = known_then.gpu_model
            and known_then.day <= weekly.day - 7
    group by weekly.cluster, weekly.gpu_model, weekly.day, weekly.held_gpu_hours, weekly.naive_gpu_hours
    having count(*) >= 7
)

select
    cluster,
    gpu_model,
    day,
    held_gpu_hours,
    naive_gpu_hours,
    greatest(0, naive_gpu_hours + change_gpu_hours) as expected_gpu_hours,
    held_gpu_hours between naive_gpu_hours + low_change_gpu_hours and naive_gpu_hours + high_change_gpu_hours as is_within
from known
