-- GPUs that were enough: how many were allocated, and how many active, in the median hour, in 95 of 100 hours, and at most.
--
-- A GPU that is active for half an hour counts as half of one there, so this is a floor. Active GPUs are unknown where activity
-- is known for less than figure_min_coverage of the allocated time; allocated GPUs where the allocation is known for less than that
-- of the usable time. Nodes without telemetry count by requests and placements.
--
-- grain:  cluster, gpu_model
-- reads:  report.gpu_hour_course
-- params: figure_min_coverage_ratio
-- source: report.gpu_hour_course
-- columns: cluster, gpu_model, hour_count, usable_gpus_avg, allocated_gpus_p50, allocated_gpus_p95, allocated_gpus_max, active_gpus_p50,
--          active_gpus_p95, active_gpus_max, unknown_reasons
--   gpu_model           model; '(all)' for all of the cluster, whose busiest hours need not be those of each model
--   hour_count          hours that are known
with hour as (
    select
        cluster,
        coalesce(gpu_model, '(all)') as gpu_model,
        hour_start_at,
        sum(usable_gpu_hours) as usable_gpus,
        sum(allocated_gpu_hours) as allocated_gpus,
        sum(unnamed_gpu_hours) as unnamed_gpus,
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
        if(
            coalesce(sum(unnamed_gpus), 0) <= (1 - $figure_min_coverage_ratio) * sum(usable_gpus),
            quantile_disc(allocated_gpus, [0.5, 0.95, 1]), null
        ) as allocated,
        if(
            sum(known_gpus) >= $figure_min_coverage_ratio * sum(allocated_gpus) and allocated is not null, quantile_disc(active_gpus, [0.5, 0.95, 1]), null
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
        ('allocated_gpus_p50', if(allocated is null, 'low_coverage', null)),
        ('allocated_gpus_p95', if(allocated is null, 'low_coverage', null)),
        ('allocated_gpus_max', if(allocated is null, 'low_coverage', null)),
        ('active_gpus_p50', if(active is null, 'low_coverage', null)),
        ('active_gpus_p95', if(active is null, 'low_coverage', null)),
        ('active_gpus_max', if(active is null, 'low_coverage', null))
    ]) as unknown_reasons
from summed
