-- Allocated GPU-hours by how the pods of each workload ended, if known.
--
-- A deleted pod was last seen running, more than an hour before the cluster's last pod. Days without data hide ends. A restart costs the
-- time between two runs of a container. Saved work is unknown.
--
-- grain:  cluster, namespace, workload_kind, workload, outcome
-- reads:  facts.container_run, facts.node_allocation, facts.node_day, facts.ownership, facts.pod_outcome, period.ledger, period.workload
-- params: figure_min_coverage_ratio, since_at, until_at
-- source: facts.pod_outcome, facts.container_run; hours: period.ledger
-- columns: cluster, namespace, workload_kind, workload, outcome, pod_count, allocated_gpu_hours, allocated_idle_gpu_hours, restart_count,
--          restart_gpu_hours, unknown_reasons
--   outcome  running (at the end), succeeded, failed, evicted, preempted, out_of_memory, node_shutdown, deleted, or unknown
with reported as (
    select
        *,
        count(*) over (
            partition by cluster
            order by seen_at
            range between interval 1 hour following and interval 25 hours following
        ) = 0 and seen_at + interval 23 hours <= $until_at as is_end_hidden
    from (
        from facts.pod_outcome
        union all by name
        -- A day with data of Kubernetes may have no pod.
        select
            cluster,
            end_at as seen_at
        from facts.node_day
        where accelerator_pod_count is not null
    ) as listed
),

known as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        arg_max(outcome, seen_at) as outcome,
        -- Snapshots of the next day report only some of the pods.
        least(max(seen_at), $until_at::timestamp) as seen_at,
        least(max(max(seen_at)) over (partition by cluster), $until_at::timestamp) as last_at,
        arg_max(is_end_hidden, seen_at) as is_end_hidden
    from reported
    where pod is not null
    group by cluster, namespace, pod, pod_uid
),

-- Facts are of whole days, so they may include times after the window.
later as (
    select columns('^(cluster|namespace|pod|pod_uid)$')
    from facts.ownership
    where end_at > $until_at
    union by name
    select columns('^(cluster|namespace|pod|pod_uid)$')
    from facts.node_allocation
    where state = 'allocated' and end_at > $until_at
),

used as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        sum(gpu_hours) as allocated_gpu_hours,
        sum(if(bucket = 'allocated_idle', gpu_hours, 0)) as idle_gpu_hours,
        sum(if(bucket = 'allocated_unmeasured', 0, gpu_hours)) as measured_gpu_hours
    from period.ledger
    where bucket in ('allocated_idle', 'effective', 'underutilized', 'active_unmeasured', 'allocated_unmeasured')
    group by cluster, namespace, pod, pod_uid
),

-- A run that begins after midnight also has a row on the day on which the previous run ended.
begun as (
    select
        *,
        run_at >= greatest(start_at, $since_at::timestamp) and run_at < least(end_at, $until_at) as is_begun
    from facts.container_run
    where start_at < $until_at and end_at > $since_at
),

restarted as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        if(bool_or(is_begun and restart_count is null), null, coalesce(sum(restart_count) filter (where is_begun), 0)) as restarts,
        if(bool_or(coalesce(restart_count, 1) > 0 and run_at >= start_at and gpu_count is null), null, sum(
            coalesce(gpu_count, 0) * overlap_ms(start_at, least(run_at, end_at), $since_at::timestamp, $until_at::timestamp)
        ) / 3600000) as down_gpu_hours
    from begun
    group by cluster, namespace, pod, pod_uid
)

select
    used.cluster,
    used.namespace,
    coalesce(workload.workload_kind, 'by name') as workload_kind,
    coalesce(workload.workload, workload_by_name(used.pod)) as workload,
    case
        when later.pod is not null then 'running'
        when known.outcome is null or (known.outcome = 'running' and known.is_end_hidden) then 'unknown'
        when known.outcome = 'running' and known.seen_at < known.last_at - interval 1 hour then 'deleted'
        else known.outcome
    end as outcome,
    count(*) as pod_count,
    sum(used.allocated_gpu_hours) as allocated_gpu_hours,
    if(sum(measured_gpu_hours) >= $figure_min_coverage_ratio * sum(used.allocated_gpu_hours), sum(idle_gpu_hours), null) as allocated_idle_gpu_hours,
    if(count(*) = count(restarted.restarts), sum(restarted.restarts), null)::bigint as restart_count,
    if(count(*) = count(restarted.down_gpu_hours), sum(restarted.down_gpu_hours), null) as restart_gpu_hours,
    unknown_reasons([
        ('allocated_idle_gpu_hours', if(allocated_idle_gpu_hours is null, if(sum(measured_gpu_hours) > 0, 'low_coverage', 'not_collected'), null)),
        ('restart_count', if(restart_count is null, 'not_collected', null)), ('restart_gpu_hours', if(restart_gpu_hours is null, 'not_collected', null))
    ]) as unknown_reasons
from used
left join restarted
    using (cluster, namespace, pod, pod_uid)
left join known
    using (cluster, namespace, pod, pod_uid)
left join later
    using (cluster, namespace, pod, pod_uid)
left join period.workload as workload
    using (cluster, namespace, pod, pod_uid)
group by all
