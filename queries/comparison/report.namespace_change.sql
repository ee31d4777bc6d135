-- GPU-hours of each namespace in the window and in the previous period.
--
-- grain:  cluster, namespace
-- reads:  period.allocated_change
-- params: figure_min_coverage_ratio
-- source: period.ledger of both windows; the one before scaled to the length of this one
-- columns: cluster, namespace, change, previous_allocated_gpu_hours, allocated_gpu_hours, allocated_change_gpu_hours,
--          previous_effective_gpu_hours, effective_gpu_hours, effective_change_gpu_hours, new_workload_count, ended_workload_count,
--          unknown_reasons
--   change                        new, ended, grew, shrank or same
--   previous_allocated_gpu_hours  h allocated in the previous period
--   previous_effective_gpu_hours  h of these with SM activity of 0.5 or more, where measured
--   effective_gpu_hours           h of these with SM activity of 0.5 or more, where measured
with summed as (
    select
        cluster,
        namespace,
        sum(columns('^(previous_)?allocated_gpu_hours$')),
        -- Null where most allocated hours are unmeasured, as in the bridge.
        if(
            sum(previous_unmeasured_gpu_hours) > (1 - $figure_min_coverage_ratio) * sum(previous_allocated_gpu_hours),
            null,
            sum(previous_effective_gpu_hours)
        ) as previous_effective_gpu_hours,
        if(
            sum(unmeasured_gpu_hours) > (1 - $figure_min_coverage_ratio) * sum(allocated_gpu_hours), null, sum(effective_gpu_hours)
        ) as effective_gpu_hours,
        -- Not new on one model is not new.
        count(distinct workload) - count(distinct workload) filter (where allocated_before) as new_workload_count,
        count(distinct workload) - count(distinct workload) filter (where allocated_now) as ended_workload_count
    from period.allocated_change
    group by cluster, namespace
)

select
    columns('^(cluster|namespace)$'),
    case
        when previous_allocated_gpu_hours = 0 then 'new'
        when allocated_gpu_hours = 0 then 'ended'
        when abs(allocated_gpu_hours - previous_allocated_gpu_hours) < 1e-6 then 'same'
        when allocated_gpu_hours > previous_allocated_gpu_hours then 'grew'
        else 'shrank'
    end as change,
    previous_allocated_gpu_hours,
    allocated_gpu_hours,
    round(allocated_gpu_hours - previous_allocated_gpu_hours, 9) as allocated_change_gpu_hours,
    previous_effective_gpu_hours,
    effective_gpu_hours,
    round(effective_gpu_hours - previous_effective_gpu_hours, 9) as effective_change_gpu_hours,
    new_workload_count,
    ended_workload_count,
    unknown_reasons([
        ('previous_effective_gpu_hours', if(previous_effective_gpu_hours is null, 'not_collected', null)),
        ('effective_gpu_hours', if(effective_gpu_hours is null, 'not_collected', null)),
        ('effective_change_gpu_hours', if(previous_effective_gpu_hours + effective_gpu_hours is null, 'not_collected', null))
    ]) as unknown_reasons
from summed
