-- Lifetimes of pods that labels name, or that request extended resources, claims or parts of a GPU, from snapshots.
--
-- A pod ends with its last container, else at the first snapshot that shows it completed. A pod that is deleted before completion ends at the
-- earliest of these: the end of labels with its uid after its last snapshot; the first snapshot without it; its deletion deadline, if that snapshot
-- does not follow directly. A pod starts with its first container.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  day.label_end, day.state_snapshot, lake.owner_label, lake.pod, lake.pod_container
-- source: Pod metadata and status by snapshots; day.label_end
with snapshot as (
    from day.state_snapshot
    where kind = 'pods'
),

killed as (
    select distinct
        cluster,
        pod_uid
    from lake.pod_container
    where reason = 'OOMKilled' and state = 'terminated'
),

seen as (
    select
        pod.* similar to '^(cluster|namespace|pod|pod_uid)$',
        min(pod.created_at)::timestamp as created_at,
        min(pod.scheduled_at)::timestamp as bound_at,
        min(coalesce(pod.running_at, if(pod.phase = 'Running', pod.started_at, null)))::timestamp as started_at,
        max(pod.finished_at)::timestamp as finished_at,
        min(pod.observed_at) filter (where pod.phase in ('Succeeded', 'Failed'))::timestamp as over_at,
        max(pod.deletion_at)::timestamp as deadline_at,
        arg_max(case
            when pod.phase in ('Running', 'Succeeded') then lower(pod.phase)
            when pod.status_reason = 'Evicted' then 'evicted'
            when pod.status_reason in ('Preempting', 'Preempted', 'PreemptionByScheduler') then 'preempted'
            when pod.status_reason in ('NodeLost', 'NodeShutdown', 'Shutdown', 'Terminated') then 'node_shutdown'
            when killed.pod_uid is not null then 'out_of_memory'
            else 'failed'
        end, pod.observed_at) filter (where pod.phase in ('Running', 'Succeeded', 'Failed')) as outcome,
        min(snapshot.observed_at) as listed_from_at,
        max(pod.observed_at)::timestamp as last_at,
        max(snapshot.stands_until_at) as listed_until_at,
        arg_max_null(snapshot.next_at, snapshot.observed_at) as next_at,
        arg_max(snapshot.is_followed, snapshot.observed_at) as is_followed
    from lake.pod
    inner join snapshot
        using (cluster, observed_at)
    left join killed
        using (cluster, pod_uid)
    where
        pod.pod_uid != ''
        and (
            (pod.cluster, pod.namespace, pod.pod) in (select (cluster, namespace, pod) from lake.owner_label)
            or coalesce(pod.annotations['gpu-fraction'], pod.annotations['gpu-memory']) is not null
            or (pod.cluster, pod.pod_uid) in (
                select (container.cluster, container.pod_uid)
                from lake.pod_container as container
                where len(container.claims) > 0 or contains(array_to_string(map_keys(container.requests), ' '), '/')
            )
        )
    group by pod.cluster, pod.namespace, pod.pod, pod.pod_uid
)

select
    seen.* exclude (finished_at, over_at, deadline_at, last_at, next_at, is_followed),
    coalesce(seen.finished_at, seen.over_at, least(label_end.unnamed_from_at, case
        when seen.is_followed or seen.deadline_at is null then seen.next_at
        when seen.next_at is not null then least(seen.next_at, greatest(seen.listed_until_at, seen.deadline_at))
    end)) as ended_at
from seen
left join day.label_end
    on
        seen.cluster = label_end.cluster
        and seen.pod_uid = label_end.pod_uid
        and seen.last_at <= label_end.unnamed_from_at
