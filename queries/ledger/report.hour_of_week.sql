-- Allocated and idle GPU-hours by weekday and hour of the report's time zone; idle unknown where use is known for less than figure_min_coverage.
--
-- grain:  cluster, weekday, hour_of_day
-- reads:  report.gpu_hours_over_time
-- params: figure_min_coverage_ratio, timezone
-- columns: cluster, weekday, hour_of_day, hour_count, usable_gpu_hours, allocated_gpu_hours, unnamed_gpu_hours, allocated_idle_gpu_hours,
--          allocated_ratio, allocated_idle_ratio
--   hour_count        hours of the window that are added up here
--   usable_gpu_hours  h seen in which GPUs could be used
with measured as (
    select
        * exclude (allocated_idle_gpu_hours),
        if(active_gpu_hours + allocated_idle_gpu_hours < $figure_min_coverage_ratio * allocated_gpu_hours, null, allocated_idle_gpu_hours)
            as allocated_idle_gpu_hours
    from report.gpu_hours_over_time
)

select
    cluster,
    isodow(local_time(hour_start_at, $timezone))::utinyint as weekday,
    hour(local_time(hour_start_at, $timezone))::utinyint as hour_of_day,
    count(distinct hour_start_at) as hour_count,
    sum(columns('^(usable_gpu_hours|allocated_gpu_hours|unnamed_gpu_hours|allocated_idle_gpu_hours)$')),
    sum(allocated_gpu_hours) / nullif(sum(usable_gpu_hours - unnamed_gpu_hours), 0) as allocated_ratio,
    sum(allocated_idle_gpu_hours) / nullif(sum(usable_gpu_hours - unnamed_gpu_hours), 0) as allocated_idle_ratio
from measured
group by all
