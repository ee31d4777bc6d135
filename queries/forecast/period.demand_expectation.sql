-- Demand that was to be expected of each GPU model, from each day of the past for the week after it, from the last one for 90 days.
--
-- The day's value, plus what the weekday is above its own, plus the change from day to day (period.demand_profile). Around it the 80 % interval
-- of the errors that this would have had between days that were known then.
--
-- grain:  cluster, gpu_model, origin_day, lead_day_count
-- reads:  period.demand_day, period.demand_profile
-- source: period.demand_day, period.demand_profile
-- columns:
--   lead_day_count      days from there
--   carried_gpu_hours   h on that day
with origin as (
    select
        * exclude (day),
        day as origin_day,
        unnest(range(1, if(day = max(day) over (partition by cluster, gpu_model), 91, 8))) as lead_day_count
    from period.demand_profile
),

error as (
    select
        origin.* similar to '^(cluster|gpu_model|origin_day|lead_day_count)$',
        quantile_cont(
            later.allocated_gpu_hours - start_day.allocated_gpu_hours - origin.lead_day_count * origin.change_gpu_hours
            - origin.above_gpu_hours[isodow(later.day)] + origin.above_gpu_hours[isodow(start_day.day)],
            [0.1, 0.9]
        ) as edges
    from origin
    inner join period.demand_day as start_day
        using (cluster, gpu_model)
    inner join period.demand_day as later
        using (cluster, gpu_model)
    where start_day.is_counted and later.is_counted and later.day <= origin.origin_day and later.day = start_day.day + origin.lead_day_count::integer
    group by all
)

select
    columns('^(cluster|gpu_model|origin_day|lead_day_count)$'),
    allocated_gpu_hours as carried_gpu_hours,
    greatest(
        0,
        allocated_gpu_hours + lead_day_count * change_gpu_hours
        + above_gpu_hours[isodow(origin_day + lead_day_count::integer)] - above_gpu_hours[isodow(origin_day)]
    ) as expected_gpu_hours,
    if(edges is null, null, greatest(0, expected_gpu_hours + least(0, edges[1]))) as low_gpu_hours,
    if(edges is null, null, expected_gpu_hours + greatest(0, edges[2])) as high_gpu_hours
from origin
left join error
    using (cluster, gpu_model, origin_day, lead_day_count)
