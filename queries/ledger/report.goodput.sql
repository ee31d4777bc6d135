-- Scheduling goodput of each team: allocated GPU-hours without those of evicted pods, lost nodes and restarts, where known.
--
-- grain:  cluster, team
-- reads:  period.team, report.outcome
-- params: figure_min_coverage_ratio
-- columns: cluster, team, allocated_gpu_hours, evicted_gpu_hours, node_lost_gpu_hours, failed_gpu_hours, restart_gpu_hours,
--          unreported_gpu_hours, scheduling_goodput_ratio, program_goodput_ratio, unknown_reasons
with summed as (
    select
        cluster,
        coalesce(nullif(team.team, ''), namespace) as team,
        sum(allocated_gpu_hours) as allocated_gpu_hours,
        if(bool_and(outcome in ('unknown', 'deleted')), null, 0) as no_hours,
        coalesce(sum(allocated_gpu_hours) filter (where outcome in ('evicted', 'preempted')), no_hours) as evicted_gpu_hours,
        coalesce(sum(allocated_gpu_hours) filter (where outcome = 'node_shutdown'), no_hours) as node_lost_gpu_hours,
        coalesce(sum(allocated_gpu_hours) filter (where outcome in ('failed', 'out_of_memory')), no_hours) as failed_gpu_hours,
        if(count(*) = count(restart_gpu_hours), sum(restart_gpu_hours), null) as restart_gpu_hours,
        coalesce(sum(restart_gpu_hours) filter (where outcome in ('running', 'succeeded', 'failed', 'out_of_memory')), 0) as lost_gpu_hours,
        coalesce(sum(allocated_gpu_hours) filter (where outcome in ('unknown', 'deleted')), 0) as unreported_gpu_hours,
        sum(allocated_gpu_hours) filter (where outcome in ('evicted', 'preempted', 'node_shutdown') or (
            outcome not in ('unknown', 'deleted') and restart_gpu_hours is not null
        )) as judged_gpu_hours
    from report.outcome
    left join period.team as team
        using (cluster, namespace)
    group by all
)

select
    * exclude (no_hours, lost_gpu_hours, judged_gpu_hours),
    if(
        judged_gpu_hours >= $figure_min_coverage_ratio * allocated_gpu_hours,
        1 - (evicted_gpu_hours + node_lost_gpu_hours + lost_gpu_hours) / nullif(judged_gpu_hours, 0), null
    ) as scheduling_goodput_ratio,
    null::double as program_goodput_ratio,
    unknown_reasons([(name, if(no_hours is null, 'not_observed', null)) for name in ['evicted_gpu_hours', 'node_lost_gpu_hours', 'failed_gpu_hours']] || [
        ('scheduling_goodput_ratio', if(scheduling_goodput_ratio is null, if(unreported_gpu_hours < allocated_gpu_hours, 'low_coverage', 'not_observed'), null)),
        ('program_goodput_ratio', 'not_measurable'),
        ('restart_gpu_hours', if(restart_gpu_hours is null, 'not_collected', null))
    ]) as unknown_reasons
from summed
