-- Run times of containers that may hold devices, from snapshots of pods.
--
-- Start and end of a run come from the kubelet. Without a reported end, a run ends at the first snapshot without it, at most 15 minutes after the
-- last one with it, or when the next run starts. Snapshots with the same start are one run, also across gaps. Only containers that use a claim or
-- request an extended resource, and containers of pods with a reported device, have rows.
--
-- grain:  cluster, namespace, pod, pod_uid, container, start_at
-- reads:  day.state_snapshot, lake.pod, lake.pod_container, lake.pod_device
-- source: Pod status.containerStatuses, status.startTime
-- columns:
--   claims         resource claims that it uses
--   restart_count  restarts before it; null where unknown
--   stopped_at     UTC, end of the previous run, if the kubelet reports it
--   resources      extended resources that it requests, sorted
with named as (
    select distinct columns('^(cluster|namespace|pod)$')
    from lake.pod_device
    where pod_uid = ''
),

reported as (
    select distinct
        cluster,
        pod_uid
    from lake.pod_device
    where pod_uid != ''
    union by name
    select distinct
        pod.cluster,
        pod.pod_uid
    from lake.pod
    inner join named
        using (cluster, namespace, pod)
),

seen as (
    select
        container.* exclude (observed_at, finished_at),
        list_sort(list_filter(map_keys(container.requests), lambda name: contains(name, '/'))) as resources,
        pod.node_name,
        container.observed_at::timestamp as observed_at,
        coalesce(container.started_at, pod.running_at, pod.started_at, pod.scheduled_at, container.observed_at)::timestamp as start_at,
        if(container.state = 'running', null, coalesce(container.finished_at, pod.finished_at))::timestamp as finished_at,
        if(container.state = 'running', container.finished_at, null)::timestamp as stopped_at,
        snapshot.stands_until_at
    from lake.pod_container as container
    inner join lake.pod
        using (cluster, pod_uid, observed_at)
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'pods'
        and (container.state in ('running', 'terminated') or container.started_at is not null)
        and (
            len(container.claims) > 0
            or len(resources) > 0
            or (container.cluster, container.pod_uid) in (select (reported.cluster, reported.pod_uid) from reported)
        )
),

run as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        arg_max(columns('^(claims|resources)$'), observed_at) as "\0",
        start_at,
        max(columns('^(node_name|finished_at|stopped_at|restart_count|stands_until_at)$')),
        max(observed_at) as last_at
    from seen
    group by cluster, namespace, pod, pod_uid, container, start_at
),

-- A run ends before the container's next run starts, even where a later snapshot reports the end.
followed as (
    select
        *,
        lead(start_at) over in_order as next_start_at,
        lead(stopped_at) over in_order as next_stopped_at
    from run
    window in_order as (partition by cluster, pod_uid, container order by start_at)
)

select
    * exclude (finished_at, last_at, stands_until_at, next_start_at, next_stopped_at),
    coalesce(finished_at, next_stopped_at, least(stands_until_at, next_start_at)) as end_at,
    if(coalesce(finished_at, next_stopped_at) is not null, 0, greatest(0, epoch(end_at - last_at)))::double as end_uncertainty_seconds
from followed
where start_at < coalesce(finished_at, next_stopped_at, stands_until_at)
