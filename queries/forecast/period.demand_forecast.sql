-- Forecast per GPU model and day: the same weekday of the last week, with the spread of past week-to-week changes.
--
-- Seasonal-naive with quantiles: for a day k weeks ahead, the value of its weekday in the last week plus k times the median change over a
-- week; around it the spread that changes over k weeks have between their tenth and ninetieth percentile. As many weeks ahead as half of
-- the weeks behind, 13 at most; nothing where fewer than 28 days count, nor where carrying the last day on was closer in the past.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_backtest, period.demand_day
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

closer as (
    select
        cluster,
        gpu_model
    from period.demand_backtest
    group by cluster, gpu_model
    having sum(abs(allocated_gpu_hours - expected_gpu_hours)) <= sum(abs(allocated_gpu_hours - carried_gpu_hours))
),

change as (
    select
        past.cluster,
        past.gpu_model,
        ahead.weeks_ahead_count,
        quantile_cont(past.allocated_gpu_hours - before.allocated_gpu_hours, [0.1, 0.5, 0.9]) as changes
    from past
    inner join extent
        using (cluster, gpu_model)
    inner join closer
        using (cluster, gpu_model)
    inner join range(1, 14) as ahead (weeks_ahead_count) on ahead.weeks_ahead_count <= extent.horizon_count
    inner join past as before
        using (cluster, gpu_model)
    where past.day = before.day + (7 * ahead.weeks_ahead_count)::integer
    group by past.cluster, past.gpu_model, ahead.weeks_ahead_count
),

centered as (
    select
        * exclude (changes),
        weeks_ahead_count * first_value(changes[2]) over (
            partition by cluster, gpu_model
            order by weeks_ahead_count
        ) as change_gpu_hours,
        changes[2] - changes[1] as below_gpu_hours,
        changes[3] - changes[2] as above_gpu_hours
    from change
)

select
    centered.cluster,
    centered.gpu_model,
    (base.day + (7 * centered.weeks_ahead_count)::integer)::date as day,
    greatest(0, base.allocated_gpu_hours + centered.change_gpu_hours - centered.below_gpu_hours) as low_gpu_hours,
    greatest(0, base.allocated_gpu_hours + centered.change_gpu_hours) as expected_gpu_hours,
    greatest(0, base.allocated_gpu_hours + centered.change_gpu_hours + centered.above_gpu_hours) as high_gpu_hours
from centered
inner join extent
    using (cluster, gpu_model)
inner join past as base
    using (cluster, gpu_model)
where base.day > extent.last_day - 7
