-- Demand of each GPU model by weekday, and its daily change, as known on each past day.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_day
with step as (
    select
        *,
        if(count(*) over week = 7, allocated_gpu_hours - avg(allocated_gpu_hours) over week, null) as above_gpu_hours,
        allocated_gpu_hours - any_value(allocated_gpu_hours) over week_before as change_gpu_hours
    from period.demand_day
    where is_counted
    window
        week as (partition by cluster, gpu_model order by day range between interval 6 day preceding and current row),
        week_before as (partition by cluster, gpu_model order by day range between interval 7 day preceding and interval 7 day preceding)
),

weekday as (
    select
        origin.* similar to '^(cluster|gpu_model|day|allocated_gpu_hours)$',
        isodow(step.day) as weekday,
        median(step.above_gpu_hours) as above_gpu_hours,
        list(step.change_gpu_hours) filter (where step.change_gpu_hours is not null) as changes
    from step as origin
    inner join step
        using (cluster, gpu_model)
    where step.day <= origin.day
    group by all
)

select
    columns('^(cluster|gpu_model|day|allocated_gpu_hours)$'),
    list(above_gpu_hours order by weekday) as above_gpu_hours,
    list_median(flatten(list(changes))) / 7 as change_gpu_hours
from weekday
group by cluster, gpu_model, day, allocated_gpu_hours
having count(above_gpu_hours) = 7 and len(flatten(list(changes))) >= 7
