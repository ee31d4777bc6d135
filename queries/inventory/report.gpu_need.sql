-- GPUs needed: allocated and active ones in the median hour, in 95 of 100 hours and at most; and GPUs free in every hour.
--
-- Half an active hour is half a GPU: a lower bound. GPU-hours are divided by the cluster's time with data. Left out are hours that the window cuts,
-- unless all are cut, and hours with data for less than figure_min_coverage (with nodes known by requests alone, 0.99). A figure is unknown where the
-- whole window has too little data. GPUs to add are those of pods that wait longer than wait_hours_max, without pods that a quota holds back; unknown
-- where the size of one of them is, or where pods are not listed.
--
-- grain:  cluster, gpu_model
-- reads:  facts.device_hour, facts.node_allocation, period.capacity, period.pod_wait, period.unseen_allocation, report.gpu_hours_over_time
-- params: figure_min_coverage_ratio, since_at, until_at, wait_hours_max
-- columns: cluster, gpu_model, hour_count, usable_gpus_avg, free_gpus_min, allocated_gpus_p50, allocated_gpus_p95, allocated_gpus_max,
--          active_gpus_p50, active_gpus_p95, active_gpus_max, overdue_gpus_p95, unknown_reasons
--   gpu_model           model; '(all)' for the cluster; its busiest hours may differ from those of each model
--   hour_count          hours that count
with seen as (
    select
        cluster,
        hour_start_at,
        max(observed_seconds) / 3600 as seen_hours
    from facts.device_hour
    group by all
),

-- Requests of nodes without telemetry are of whole hours: beside them, hours with data for only a part are left out.
silent as (
    select distinct columns('^(cluster|day)$')
    from period.unseen_allocation
    inner join period.capacity
        using (cluster, node_name, day)
    where unseen_seconds = capacity_seconds or covers_unnamed
),

hour as (
    select
        cluster,
        coalesce(gpu_model, '(all)') as gpu_model,
        hour_start_at,
        overlap_ms(hour_start_at, hour_start_at + interval 1 hour, $since_at::timestamp, $until_at::timestamp) / 3600000 as window_hours,
        coalesce(any_value(seen.seen_hours), window_hours) as hours,
        sum(columns('^(usable|allocated|unnamed|active)_gpu_hours$')) / hours as '\1_gpus',
        sum(active_gpu_hours + allocated_idle_gpu_hours) / hours as known_gpus,
        sum(allocated_gpu_hours + coalesce(unnamed_gpu_hours, 0)) / hours as held_gpus
    from report.gpu_hours_over_time
    left join seen
        using (cluster, hour_start_at)
    group by grouping sets ((cluster, gpu_model, hour_start_at), (cluster, hour_start_at))
    qualify
        hours >= if((cluster, hour_start_at::date) in (from silent), 0.99, $figure_min_coverage_ratio) * window_hours
        and (window_hours = 1 or max(window_hours) over (partition by cluster) < 1)
),

summed as (
    select
        cluster,
        gpu_model,
        count(*) as hour_count,
        max(hour_count) over same_cluster >= $figure_min_coverage_ratio * date_diff('hour', $since_at::timestamp, $until_at::timestamp) as is_covered,
        avg(usable_gpus) as usable_gpus_avg,
        if(
            is_covered and coalesce(sum(unnamed_gpus), 0) <= (1 - $figure_min_coverage_ratio) * sum(usable_gpus),
            quantile_disc(if(coalesce(unnamed_gpus, 0) <= (1 - $figure_min_coverage_ratio) * usable_gpus, allocated_gpus, null), [0.5, 0.95, 1]),
            null
        ) as allocated,
        if(allocated is not null and hour_count = max(hour_count) over same_cluster, min(greatest(0, usable_gpus - held_gpus)), null) as free_gpus_min,
        if(
            sum(known_gpus) >= $figure_min_coverage_ratio * sum(held_gpus) and allocated is not null,
            quantile_disc(active_gpus, [0.5, 0.95, 1]) filter (where known_gpus >= $figure_min_coverage_ratio * held_gpus), null
        ) as active
    from hour
    group by cluster, gpu_model
    window same_cluster as (partition by cluster)
),

-- A pod that waits for one model only counts for that model too.
waiting as (
    select
        cluster,
        unnest(list_distinct(['(all)', wanted_model])) as gpu_model,
        requested_gpus,
        created_at + to_milliseconds(round($wait_hours_max * 3600000)::bigint) as due_at,
        coalesce(created_at + to_milliseconds(round(placing_seconds * 1000)::bigint), pending_until_at) as until_at
    from period.pod_wait
    where (is_placed or is_waiting) and refusal not in ('gate', 'quota')
),

edge as (
    select
        columns('^(cluster|gpu_model)$'),
        unnest([
            { 'edge_at': due_at, 'gpus': if(until_at > due_at, requested_gpus, 0), 'is_due': true },
            { 'edge_at': until_at, 'gpus': if(until_at > due_at, -requested_gpus, 0), 'is_due': false }
        ], recursive := true)
    from waiting
),

overdue as (
    select
        *,
        if(gpus > 0, sum(gpus) over (partition by cluster, gpu_model order by edge_at), 0) as overdue_gpus
    from edge
),

missing as (
    select
        columns('^(cluster|gpu_model)$'),
        count(gpus) < count(*) as is_unsized,
        if(is_unsized, null, quantile_disc(overdue_gpus, 0.95) filter (where is_due)) as overdue_gpus_p95
    from overdue
    group by all
)

select
    summed.* exclude (is_covered, allocated, active),
    allocated[1] as allocated_gpus_p50,
    allocated[2] as allocated_gpus_p95,
    allocated[3] as allocated_gpus_max,
    active[1] as active_gpus_p50,
    active[2] as active_gpus_p95,
    active[3] as active_gpus_max,
    missing.overdue_gpus_p95,
    unknown_reasons(
        [(name, if(allocated is null, 'low_coverage', null)) for name in ['allocated_gpus_p50', 'allocated_gpus_p95', 'allocated_gpus_max']]
        || [('free_gpus_min', if(free_gpus_min is null, 'low_coverage', null)), ('overdue_gpus_p95', case
            when missing.is_unsized then 'not_collected'
            when missing.cluster is null then if(summed.cluster in (
                select node.cluster from facts.node_allocation as node
                where node.start_at < $until_at and node.end_at > $since_at
            ), 'no_pod', 'not_collected')
        end)]
        || [(name, if(active is null, 'low_coverage', null)) for name in ['active_gpus_p50', 'active_gpus_p95', 'active_gpus_max']]
    ) as unknown_reasons
from summed
left join missing
    using (cluster, gpu_model)
