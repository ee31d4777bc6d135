-- Weighted mean of a week's allocated GPU-hours by GPU model, on each counted day: a counted day weighs half of the next day, other days 0.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_day
-- columns:
--   smoothed_gpu_hours  h, weighted mean of the seven days up to this one
--   weekday_weights     weights of these days from Monday to Sunday, 1 in total
--   age_day_count_avg   days before this one, weighted mean
with week as (
    select
        origin.* similar to '^(cluster|gpu_model|day)$',
        list(past.allocated_gpu_hours order by past.day desc) as hours,
        list((origin.day - past.day)::double order by past.day desc) as ages,
        list(0.5 ^ (origin.day - past.day) order by past.day desc) as weights
    from period.demand_day as origin
    inner join period.demand_day as past
        using (cluster, gpu_model)
    where origin.is_counted and past.is_counted and origin.day - past.day between 0 and 6
    group by all
)

select
    columns('^(cluster|gpu_model|day)$'),
    round(list_dot_product(hours, weights) / list_sum(weights), 9) as smoothed_gpu_hours,
    [coalesce(weights[list_position(ages, (isodow(day) - weekday + 7) % 7)], 0) / list_sum(weights) for weekday in range(1, 8)] as weekday_weights,
    list_dot_product(ages, weights) / list_sum(weights) as age_day_count_avg
from week
