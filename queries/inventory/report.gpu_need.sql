-- GPUs that were enough: how many were allocated, and how many active, in the median hour, in 95 of 100 hours, and at most.
--
-- A GPU that is active for half an hour counts as half of one there, so this is a floor. Active GPUs are unknown where activity
-- is known for less than figure_min_coverage of the allocated time.
--
-- grain:  cluster, gpu_model
-- reads:  report.gpu_hour_course
-- params: figure_min_coverage_ratio
-- source: report.gpu_hour_course
-- columns: cluster, gpu_model, hour_count, usable_gpus_avg, allocated_gpus_p50, allocated_gpus_p95, allocated_gpus_max, active_gpus_p50,
--          active_gpus_p95, active_gpus_max, unknown_reasons
--   gpu_model           model; '(all)' for all of the cluster, whose busiest hours need not be those of each model
--   hour_count          hours that are known
--   usable_gpus_avg     GPUs that could be used, on average
--   allocated_gpus_p50  GPUs allocated in the median hour
--   allocated_gpus_p95  GPUs that were enough for what was allocated in 95 of 100 hours
--   allocated_gpus_max  GPUs allocated in the fullest hour
--   active_gpus_p50     GPUs active in the median hour
--   active_gpus_p95     GPUs that were enough for what was active in 95 of 100 hours
--   active_gpus_max     GPUs active in the busiest hour
with hour as (
    select
        cluster,
        coalesce(gpu_model, '(all)') as gpu_model,
        hour_start_at,
        sum(usable_gpu_hours) as usable_gpus,
        sum(held_gpu_hours) as allocated_gpus,
        sum(active_gpu_hours) as active_gpus,
        sum(active_gpu_hours + allocated_idle_gpu_hours) as known_gpus
    from report.gpu_hour_course
    group by grouping sets ((cluster, gpu_model, hour_start_at), (cluster, hour_start_at))
),

summed as (
    select
        cluster,
        gpu_model,
        count(*) as hour_count,
        avg(usable_gpus) as usable_gpus_avg,
        quantile_disc(allocated_gpus, [0.5, 0.95, 1]) as allocated,
        if(
            sum(known_gpus) >= $figure_min_coverage_ratio * sum(allocated_gpus), quantile_disc(active_gpus, [0.5, 0.95, 1]), null
        ) as active
    from hour
    group by cluster, gpu_model
)

select
    * exclude (allocated, active),
    allocated[1] as allocated_gpus_p50,
    allocated[2] as allocated_gpus_p95,
    allocated[3] as allocated_gpus_max,
    active[1] as active_gpus_p50,
    active[2] as active_gpus_p95,
    active[3] as active_gpus_max,
    unknown_reasons([
        ('active_gpus_p50', if(active is null, 'low_coverage', null)),
        ('active_gpus_p95', if(active is null, 'low_coverage', null)),
        ('active_gpus_max', if(active is null, 'low_coverage', null))
    ]) as unknown_reasons
from summed
