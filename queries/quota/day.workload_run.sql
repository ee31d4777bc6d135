-- Attempts of Kueue's Workloads to run: waiting, with quota, and the end; one row from each queueing to the next.
--
-- Conditions have their own times. So events between snapshots are also known, as long as a later snapshot lists the workload. A state in a snapshot
-- begins at the snapshot's time or before, even if its own time is later. An evicted workload queues again at the time of eviction. A deactivated
-- workload does not wait until it is resumed; neither does one in a held LocalQueue or ClusterQueue (spec.stopPolicy). A slice of an elastic job ends
-- when its replacement has quota: Kueue finishes it later, and no longer counts it.
--
-- grain:  cluster, workload_uid, attempt
-- reads:  day.state_snapshot, lake.quota, lake.workload
-- source: Workload, LocalQueue and ClusterQueue objects
-- columns:
--   end_reason     Finished, Deleted, Deactivated, Held, or reason of the eviction; '' while it goes on, or unknown
--   requests       requested or reserved amounts at the start, by pod set and resource
with held as (
    select distinct
        local_queue.* similar to '^(cluster|namespace|observed_at)$',
        local_queue.name as local_queue
    from lake.quota as local_queue
    left join lake.quota as queue
        on (queue.cluster, queue.observed_at, queue.kind, queue.name) = (
            local_queue.cluster, local_queue.observed_at, 'clusterqueues.kueue.x-k8s.io', local_queue.spec ->> '$.clusterQueue'
        )
    where
        local_queue.kind = 'localqueues.kueue.x-k8s.io'
        and 'Hold' in (left(local_queue.spec ->> '$.stopPolicy', 4), left(queue.spec ->> '$.stopPolicy', 4))
),

seen as (
    select
        workload.reserved_at is null and held.cluster is not null as is_held,
        workload.* replace (workload.is_active and not is_held as is_active),
        snapshot.observed_at as snapshot_at,
        snapshot.next_at,
        max(if(workload.is_active and not is_held, null, snapshot.observed_at)) over (
            partition by workload.cluster, workload.workload_uid
        ) as last_inactive_at
    from lake.workload as workload
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    left join held
        using (cluster, namespace, local_queue, observed_at)
    where snapshot.kind = 'workloads.kueue.x-k8s.io'
),

local_queue as (
    select
        cluster,
        namespace,
        name as local_queue,
        arg_max(spec ->> '$.clusterQueue', observed_at) as cluster_queue
    from lake.quota
    where kind = 'localqueues.kueue.x-k8s.io'
    group by all
),

life as (
    select
        seen.cluster,
        seen.workload_uid,
        max(columns('^(namespace|workload|owner_kind|owner_name|replaces)$')),
        arg_max(local_queue, snapshot_at) as local_queue,
        arg_max(priority, snapshot_at) as priority,
        arg_max(priority_class, snapshot_at) as priority_class,
        least(coalesce(arg_min_null(if(evicted_at is null, null, released_at), snapshot_at), min(created_at))::timestamp, min(snapshot_at)) as queued_at,
        max(finished_at)::timestamp as finished_at,
        min(least(snapshot_at, if(eviction_reason like 'Deactivated%', evicted_at, null)::timestamp)) filter (where not is_active) as inactive_at,
        arg_min(is_held, snapshot_at) filter (where not is_active) as is_held,
        min(least(snapshot_at, reserved_at::timestamp)) filter (where is_active and snapshot_at > last_inactive_at) as resumed_at,
        arg_max_null(next_at, snapshot_at) as gone_at
    from seen
    group by seen.cluster, seen.workload_uid
),

reservation as (
    select
        cluster,
        workload_uid,
        least(seen.reserved_at::timestamp, min(snapshot_at)) as reserved_at,
        min(admitted_at)::timestamp as admitted_at,
        max(cluster_queue) as cluster_queue,
        arg_min_null(columns('^(requests|waiting_counts)$'), snapshot_at) as "\0"
    from seen
    where seen.reserved_at is not null
    group by cluster, workload_uid, seen.reserved_at
),

replaced as (
    select
        life.cluster,
        life.replaces,
        min(reservation.reserved_at) as replaced_at
    from life
    inner join reservation
        using (cluster, workload_uid)
    group by all
),

-- A workload in the last snapshot has not ended.
ended as (
    select
        life.*,
        least(life.finished_at, replaced.replaced_at, life.gone_at) as over_at,
        if(least(life.finished_at, replaced.replaced_at) <= over_at, 'Finished', if(over_at is not null, 'Deleted', '')) as over_reason
    from life
    left join replaced
        on
            life.cluster = replaced.cluster
            and concat(life.namespace, '/', life.workload) = replaced.replaces
),

loss as (
    select
        cluster,
        workload_uid,
        least(coalesce(seen.evicted_at, released_at)::timestamp, min(snapshot_at)) as evicted_at,
        least(max(greatest(seen.evicted_at, released_at)), max(snapshot_at))::timestamp as lost_at,
        max(columns('^(eviction_reason|preemption_reason|preemptor_uid)$'))
    from seen
    where reserved_at is null or seen.evicted_at is not null
    group by cluster, workload_uid, coalesce(seen.evicted_at, released_at)
),

allocated as (
    select
        *,
        lead(reserved_at) over (
            partition by cluster, workload_uid
            order by reserved_at
        ) as next_reserved_at
    from reservation
),

holding as (
    select
        allocated.*,
        min(loss.lost_at) as lost_at,
        arg_min(loss.eviction_reason, loss.lost_at) as eviction_reason,
        arg_min(loss.preemption_reason, loss.lost_at) as preemption_reason,
        arg_min(loss.preemptor_uid, loss.lost_at) as preemptor_uid
    from allocated
    left join loss
        on
            allocated.cluster = loss.cluster
            and allocated.workload_uid = loss.workload_uid
            and loss.evicted_at > allocated.reserved_at
            and loss.evicted_at <= coalesce(allocated.next_reserved_at, 'infinity'::timestamp)
    group by all
),

attempt as (
    select
        holding.*,
        least(lost_at, next_reserved_at, over_at) as until_at,
        ended.* similar to '^(resumed_at|over_at|over_reason)$'
    from holding
    inner join ended
        using (cluster, workload_uid)
),

-- Times in which admission is possible: until deactivation, and again after it is resumed.
active as (
    select
        columns('^(cluster|workload_uid)$'),
        least(over_at, inactive_at) as to_at,
        if(inactive_at < coalesce(over_at, 'infinity'::timestamp), if(is_held, 'Held', 'Deactivated'), over_reason) as reason
    from ended
    union all by name
    select
        columns('^(cluster|workload_uid)$'),
        resumed_at as from_at,
        over_at as to_at,
        over_reason as reason
    from ended
    where resumed_at is not null
),

last_request as (
    select
        cluster,
        workload_uid,
        arg_max(requests, snapshot_at) as requests,
        arg_max(waiting_message, snapshot_at) as waiting_message
    from seen
    where reserved_at is null
    group by all
),

run as (
    select
        cluster,
        workload_uid,
        greatest(lag(until_at) over one, if(resumed_at <= reserved_at, resumed_at, null)) as queued_at,
        reserved_at,
        admitted_at,
        until_at,
        if(until_at < over_at or over_at is null, if(until_at is null, '', coalesce(eviction_reason, '')), over_reason) as end_reason,
        if(until_at < over_at or over_at is null, coalesce(columns('^preempt(ion_reason|or_uid)$'), ''), '') as "\0",
        attempt.* similar to '^(cluster_queue|requests|waiting_counts)$'
    from attempt
    window
        one as (
            partition by cluster, workload_uid
            order by reserved_at
        )
    union all by name
    -- It is still pending, or was pending until its end.
    select
        active.cluster,
        active.workload_uid,
        greatest(max(attempt.until_at), active.from_at) as queued_at,
        active.to_at as until_at,
        active.reason as end_reason,
        '' as preemption_reason,
        '' as preemptor_uid
    from active
    left join attempt
        on
            active.cluster = attempt.cluster
            and active.workload_uid = attempt.workload_uid
            and coalesce(attempt.reserved_at < active.to_at, true)
    group by active.cluster, active.workload_uid, active.from_at, active.to_at, active.reason
    having count(attempt.reserved_at) = count(attempt.until_at) and coalesce(max(attempt.until_at) < active.to_at, true)
)

select
    ended.* exclude (queued_at, finished_at, inactive_at, is_held, resumed_at, gone_at, over_at, over_reason),
    (row_number() over (
        partition by ended.cluster, ended.workload_uid
        order by coalesce(run.reserved_at, run.until_at) nulls last
    ))::uinteger as attempt,
    coalesce(nullif(run.cluster_queue, ''), local_queue.cluster_queue, '') as cluster_queue,
    coalesce(run.queued_at, least(ended.queued_at, run.reserved_at)) as queued_at,
    run.* exclude (cluster, workload_uid, queued_at, until_at, cluster_queue, requests),
    run.until_at as ended_at,
    if(run.end_reason = 'Held', coalesce(ended.resumed_at, ended.over_at), null) as held_until_at,
    if(run.reserved_at is null, coalesce(last_request.waiting_message, ''), '') as waiting_message,
    coalesce(run.requests, last_request.requests) as requests
from run
inner join ended
    using (cluster, workload_uid)
left join last_request
    using (cluster, workload_uid)
left join local_queue
    using (cluster, namespace, local_queue)
