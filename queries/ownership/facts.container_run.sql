-- Runs of containers that request accelerators, and the time between them.
--
-- Source: snapshots, else kube-state-metrics for pods without one. Restarts between two observations count, but their downtime is unknown.
--
-- revision: 3
-- grain:  cluster, namespace, pod, pod_uid, container, run_at
-- reads:  day.container_run, day.kube_series, facts.container_request, facts.pod_wait, lake.sample
-- source: Pod status.containerStatuses; kube_pod_container_state_started, kube_pod_container_status_restarts_total
-- columns: cluster, namespace, pod, pod_uid, container, run_at, restart_count, gpu_count, start_at, end_at
--   gpu_count  GPUs of the container; null where these or the downtime are unknown
--   start_at   UTC, end of the previous run; run_at for the first run
with request as (
    select
        *,
        count(*) over (partition by cluster, pod_uid) as container_count
    from facts.container_request
),

reported as (
    select
        series.* similar to '^(cluster|namespace|pod|pod_uid|container|signal)$',
        sample.* similar to '^(seen_at|held_seconds|value)$'
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    semi join request
        using (cluster, pod_uid, container)
    where series.signal in ('kube_pod_container_state_started', 'kube_pod_container_status_restarts_total')
),

run as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|restart_count|stopped_at|end_at)$'),
        start_at as run_at
    from day.container_run
    union all by name
    select
        started.* similar to '^(cluster|namespace|pod|pod_uid|container)$',
        max(restarts.value)::bigint as restart_count,
        max(held_until(started.seen_at, started.held_seconds)) as end_at,
        epoch_ms((started.value * 1000)::bigint) as run_at
    from reported as started
    left join reported as restarts
        on
            started.cluster = restarts.cluster
            and started.pod_uid = restarts.pod_uid
            and started.container = restarts.container
            and started.seen_at = restarts.seen_at
            and restarts.signal = 'kube_pod_container_status_restarts_total'
    anti join day.container_run as known
        on started.cluster = known.cluster and started.pod_uid = known.pod_uid
    where started.signal = 'kube_pod_container_state_started'
    group by all
),

followed as (
    select
        * replace (coalesce(stopped_at, lag(end_at) over in_order) as stopped_at),
        case
            when lag(run_at) over in_order is not null then coalesce(greatest(1, restart_count - lag(restart_count) over in_order), 1)
            else sign(restart_count)::bigint
        end as seen_count
    from run
    window in_order as (partition by cluster, pod_uid, container order by run_at)
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|run_at)$'),
    followed.seen_count as restart_count,
    -- Containers of a pod have equal parts of its GPUs.
    if(followed.seen_count <= if(followed.stopped_at is null, 0, 1), pod.requested_gpus / request.container_count, null) as gpu_count,
    least(run_at, coalesce(followed.stopped_at, run_at)) as start_at,
    greatest(run_at, followed.end_at) as end_at
from followed
inner join request
    using (cluster, namespace, pod, pod_uid, container)
left join facts.pod_wait as pod
    using (cluster, namespace, pod, pod_uid)
