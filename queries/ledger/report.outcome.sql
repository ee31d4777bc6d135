-- Allocated GPU-hours by how the pods of each workload ended, as far as it is known.
--
-- Deleted: seen running, and gone an hour before the last pod was seen.
--
-- grain:  cluster, namespace, workload_kind, workload, outcome
-- reads:  facts.pod_outcome, period.ledger, period.workload
-- params: until_at
-- source: facts.pod_outcome; hours: period.ledger
-- columns: cluster, namespace, workload_kind, workload, outcome, pod_count, allocated_gpu_hours, allocated_idle_gpu_hours
--   outcome  running (at the end), succeeded, failed, evicted, preempted, out_of_memory, node_shutdown, deleted, or unknown
with known as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        arg_max(outcome, seen_at) as outcome,
        -- Snapshots of the day after report some pods and not others.
        least(max(seen_at), $until_at::timestamp) as seen_at,
        least(max(max(seen_at)) over (partition by cluster), $until_at::timestamp) as last_at
    from facts.pod_outcome
    group by cluster, namespace, pod, pod_uid
),

used as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        sum(gpu_hours) as allocated_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), 0) as allocated_idle_gpu_hours
    from period.ledger
    where bucket in ('allocated_idle', 'effective', 'underutilized', 'active_unmeasured', 'allocated_unmeasured')
    group by cluster, namespace, pod, pod_uid
)

select
    used.cluster,
    used.namespace,
    coalesce(workload.workload_kind, 'by name') as workload_kind,
    coalesce(workload.workload, workload_by_name(used.pod)) as workload,
    case
        when known.outcome is null then 'unknown'
        when known.outcome = 'running' and known.seen_at < known.last_at - interval 1 hour then 'deleted'
        else known.outcome
    end as outcome,
    count(*) as pod_count,
    sum(used.allocated_gpu_hours) as allocated_gpu_hours,
    sum(used.allocated_idle_gpu_hours) as allocated_idle_gpu_hours
from used
left join known
    using (cluster, namespace, pod, pod_uid)
left join period.workload as workload
    using (cluster, namespace, pod, pod_uid)
group by all
