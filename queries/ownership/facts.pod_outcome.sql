-- Last known outcome of each pod with GPUs: running, succeeded, or failed with its reason.
--
-- A final state comes before running, every other final state before failed without a reason, and snapshots before kube-state-metrics.
--
-- revision: 4
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  day.pod_life, day.snapshot_life, facts.pod_workload
-- source: Pod status.phase, status.reason and containerStatuses; kube_pod_status_phase, kube_pod_status_reason,
--         kube_pod_container_status_terminated_reason
-- columns: cluster, namespace, pod, pod_uid, outcome, seen_at
--   seen_at  UTC, end of its last listing
with reported as (
    select
        *,
        1 as rank
    from day.snapshot_life
    union all by name
    select
        *,
        0 as rank
    from day.pod_life
)

select
    holder.* similar to '^(cluster|namespace|pod|pod_uid)$',
    arg_max(reported.outcome, (
        reported.outcome != 'running', reported.outcome != 'failed', reported.rank, reported.listed_until_at
    )) as outcome,
    max(reported.listed_until_at) as seen_at
from facts.pod_workload as holder
inner join reported
    using (cluster, namespace, pod)
where
    reported.outcome is not null and reported.listed_until_at is not null
    and (holder.pod_uid = reported.pod_uid or holder.pod_uid = '')
group by holder.cluster, holder.namespace, holder.pod, holder.pod_uid
