-- Attempts of Kueue's Workloads on the day: waiting, with quota, or held back.
--
-- revision: 12
-- grain:  cluster, workload_uid, queued_at
-- reads:  day.quota_unit, day.quota_watch, day.workload_run, lake.pod
-- source: day.workload_run; pods of the same owner
-- columns: cluster, cluster_queue, namespace, local_queue, workload, workload_uid, replaces, owner_kind, priority, priority_class, queued_at,
--          reserved_at, admitted_at, running_at, ended_at, held_until_at, end_reason, preemption_reason, preemptor_uid, waiting_message, request_gpus, waiting_request_gpus, day
--   end_reason    Finished, Deleted, Deactivated, Held, or reason of the eviction; '' while it goes on
with seen as (
    select
        cluster,
        min(start_at) as since_at,
        max(end_at) as until_at
    from day.quota_watch
    where watched = 'workloads'
    group by all
),

requested as (
    select
        * exclude (namespace, owner_name),
        unnest(requests) as part
    from day.workload_run
),

size as (
    select
        requested.* similar to '^(cluster|workload_uid|attempt)$',
        sum(requested.part.amount * unit.gpus_per_native) as request_gpus,
        sum(requested.part.amount * unit.gpus_per_native * coalesce(requested.waiting_counts[requested.part.pod_set] / requested.part.pod_count, 1)) as waiting_request_gpus
    from requested
    inner join day.quota_unit as unit
        on
            unit.system = 'kueue'
            and requested.part.resource = unit.resource
    group by all
),

ran as (
    select
        run.* similar to '^(cluster|workload_uid|attempt)$',
        min(pod.running_at)::timestamp as running_at
    from day.workload_run as run
    inner join lake.pod as pod
        using (cluster, namespace, owner_name)
    where
        pod.running_at >= run.reserved_at and pod.owner_name != ''
        and (run.ended_at is null or pod.running_at < run.ended_at)
    group by all
)

select
    run.* similar to '^(cluster|cluster_queue|namespace|local_queue|workload|workload_uid|replaces|owner_kind|priority|priority_class|queued_at|reserved_at|admitted_at)$',
    ran.running_at,
    run.* similar to '^(ended_at|held_until_at|end_reason|preemption_reason|preemptor_uid|waiting_message)$',
    if(size.cluster is null, 0, size.request_gpus) as request_gpus,
    if(size.cluster is null, 0, size.waiting_request_gpus) as waiting_request_gpus,
    seen.since_at::date as day
from day.workload_run as run
inner join seen
    using (cluster)
left join size
    using (cluster, workload_uid, attempt)
left join ran
    using (cluster, workload_uid, attempt)
where run.queued_at < seen.until_at and coalesce(if(run.end_reason = 'Held', run.held_until_at, run.ended_at), 'infinity'::timestamp) > seen.since_at
