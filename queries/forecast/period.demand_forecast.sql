-- Forecast per GPU model and day: the same weekday of the last week, with the spread of past week-to-week changes.
--
-- Seasonal-naive with quantiles: for a day k weeks ahead, the value of its weekday in the last week plus the tenth, middle and ninetieth
-- percentile of all changes over k weeks that the past has. As many weeks ahead as half of the weeks behind, 13 at most; nothing where
-- fewer than 28 days count.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_day
-- params: until_at
-- source: period.demand_day
-- columns:
--   low_gpu_hours       h, below it one in ten is expected to fall
--   expected_gpu_hours  h, the middle
--   high_gpu_hours      h, above it one in ten is expected to rise
with past as (
    select *
    from period.demand_day
    where is_counted and day + interval 1 day <= $until_at
),

extent as (
    select
        cluster,
        gpu_model,
        max(day) as last_day,
        count(*) as day_count,
        least(13, count(*) // 14) as horizon_count
    from past
    group by cluster, gpu_model
    having count(*) >= 28
),

change as (
    select
        past.cluster,
        past.gpu_model,
        ahead.weeks_ahead_count,
        quantile_cont(past.held_gpu_hours - before.held_gpu_hours, 0.1) as low_change_gpu_hours,
        quantile_cont(past.held_gpu_hours - before.held_gpu_hours, 0.5) as change_gpu_hours,
        quantile_cont(past.held_gpu_hours - before.held_gpu_hours, 0.9) as high_change_gpu_hours
    from past
    inner join extent
        using (cluster, gpu_model)
    inner join range(1, 14) as ahead (weeks_ahead_count) on ahead.weeks_ahead_count <= extent.horizon_count
    inner join past as before
        on
            past.cluster = before.cluster
            and past.gpu_model = before.gpu_model
            and past.day = before.day + (7 * ahead.weeks_ahead_count)::integer
    group by past.cluster, past.gpu_model, ahead.weeks_ahead_count
)

select
    change.cluster,
    change.gpu_model,
    (base.day + (7 * change.weeks_ahead_count)::integer)::date as day,
    greatest(0, base.held_gpu_hours + change.low_change_gpu_hours) as low_gpu_hours,
    greatest(0, base.held_gpu_hours + change.change_gpu_hours) as expected_gpu_hours,
    greatest(0, base.held_gpu_hours + change.high_change_gpu_hours) as high_gpu_hours
from change
inner join extent
    using (cluster, gpu_model)
inner join past as base
    on
        change.cluster = base.cluster
        and change.gpu_model = base.gpu_model
        and base.day > extent.last_day - 7
