-- Expected demand by GPU model: for one week from each past day, and for 90 days from the last one.
--
-- It is the sum of the weighted mean of the last week without weekday effects (period.demand_level), the daily change x days, and the difference of
-- the weekday from its week (period.demand_profile). The 80 % interval comes from its errors in the previous quarter, times n / (n - 1) for n weeks.
--
-- grain:  cluster, gpu_model, origin_day, lead_day_count
-- reads:  period.demand_day, period.demand_level, period.demand_profile
-- columns:
--   lead_day_count      days from the origin day
--   carried_gpu_hours   h on the origin day
with origin as (
    select
        *,
        day as origin_day,
        unnest(range(1, if(day = max(day) over (partition by cluster, gpu_model), 91, 8))) as lead_day_count
    from period.demand_profile
),

pair as (
    select
        level.* exclude (day),
        later.day,
        (later.day - level.day)::bigint as lead_day_count,
        later.allocated_gpu_hours - level.smoothed_gpu_hours as growth_gpu_hours
    from period.demand_day as later
    inner join period.demand_level as level
        using (cluster, gpu_model)
    where later.is_counted and later.day - level.day between 1 and 90
),

error as (
    select
        origin.* similar to '^(cluster|gpu_model|origin_day|lead_day_count)$',
        quantile_cont(
            pair.growth_gpu_hours - (pair.age_day_count_avg + pair.lead_day_count) * origin.change_gpu_hours
            - origin.above_gpu_hours[isodow(pair.day)] + list_dot_product(origin.above_gpu_hours, pair.weekday_weights),
            [0.1, 0.9]
        ) as edges,
        -- Weekday levels are learned from these same days. For a day that is not among them, such as a future day, errors are n / (n - 1) times larger.
        greatest(2, count(*) / 7) as week_count,
        week_count / (week_count - 1) as widening
    from origin
    inner join pair
        using (cluster, gpu_model, lead_day_count)
    where pair.day <= origin.origin_day and pair.day > origin.origin_day - 91
    group by all
)

select
    columns('^(cluster|gpu_model|origin_day|lead_day_count)$'),
    allocated_gpu_hours as carried_gpu_hours,
    -- Rounded like period.demand_day, so that rounding errors put no day outside its interval.
    round(greatest(
        0,
        level.smoothed_gpu_hours + (level.age_day_count_avg + lead_day_count) * change_gpu_hours
        + above_gpu_hours[isodow(origin_day + lead_day_count::integer)] - list_dot_product(above_gpu_hours, level.weekday_weights)
    ), 9) as expected_gpu_hours,
    if(edges is null, null, round(greatest(0, expected_gpu_hours + least(0, edges[1] * widening)), 9)) as low_gpu_hours,
    if(edges is null, null, round(expected_gpu_hours + greatest(0, edges[2] * widening), 9)) as high_gpu_hours
from origin
inner join period.demand_level as level
    using (cluster, gpu_model, day)
left join error
    using (cluster, gpu_model, origin_day, lead_day_count)
