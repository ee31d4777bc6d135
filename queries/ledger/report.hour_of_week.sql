-- Allocated and idle GPU-hours by weekday and hour in the report's time zone. Idle is a lower bound, null if too little is known (figure_min_coverage).
--
-- grain:  cluster, weekday, hour_of_day
-- reads:  report.gpu_hours_over_time
-- params: figure_min_coverage_ratio, timezone
-- columns: cluster, weekday, hour_of_day, hour_count, usable_gpu_hours, allocated_gpu_hours, unnamed_gpu_hours, allocated_idle_gpu_hours,
--          allocated_unmeasured_gpu_hours, allocated_ratio, allocated_idle_ratio
--   hour_count        hours of the window in the sum
--   usable_gpu_hours  h with data in which GPUs were usable
with summed as (
    select
        cluster,
        isodow(local_time(hour_start_at, $timezone))::utinyint as weekday,
        hour(local_time(hour_start_at, $timezone))::utinyint as hour_of_day,
        count(distinct hour_start_at) as hour_count,
        sum(columns('^(usable_gpu_hours|allocated_gpu_hours|unnamed_gpu_hours|allocated_idle_gpu_hours)$')),
        round(sum(allocated_gpu_hours) - coalesce(sum(active_gpu_hours + allocated_idle_gpu_hours), 0), 9) + 0 as allocated_unmeasured_gpu_hours,
        coalesce(sum(active_gpu_hours + allocated_idle_gpu_hours), 0) >= $figure_min_coverage_ratio * sum(allocated_gpu_hours) as is_measured
    from report.gpu_hours_over_time
    group by all
)

select
    * exclude (is_measured) replace (if(is_measured, allocated_idle_gpu_hours, null) as allocated_idle_gpu_hours),
    allocated_gpu_hours / nullif(usable_gpu_hours - unnamed_gpu_hours, 0) as allocated_ratio,
    if(is_measured, summed.allocated_idle_gpu_hours, null) / nullif(usable_gpu_hours - unnamed_gpu_hours, 0) as allocated_idle_ratio
from summed
