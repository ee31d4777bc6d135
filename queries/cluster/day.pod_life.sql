-- Lifetimes of pods that labels name, or that request extended resources or parts of a GPU, from kube-state-metrics.
--
-- A completed pod ends at kube_pod_completion_time, or at its first sample as Succeeded or Failed if that is earlier. A completion time with a later
-- sample of the running pod is ignored, because one of several containers may complete earlier. A pod that is deleted before completion ends with its
-- kube_pod_info, if the same kube-state-metrics continues with other pods. After a gap of kube-state-metrics, it ends with the gap, or at its
-- deletion deadline if that is earlier. A pod starts at its first sample as Running. If it already runs at the first sample, it starts at
-- kube_pod_start_time, else at its creation.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  day.kube_series, day.kube_watch, lake.owner_label, lake.pod, lake.sample
-- source: kube-state-metrics (kube_pod_info, _created, _start_time, _status_phase, _status_scheduled_time, _completion_time, _deletion_timestamp,
--         _status_reason, _container_status_terminated_reason)
-- columns:
--   outcome          running, succeeded, failed, evicted, node_shutdown or out_of_memory; null without a phase
with series as (
    from day.kube_series
    where
        pod_uid != ''
        and (starts_with(signal, 'kube_pod_status_') or regexp_matches(signal, '_(info|created|start_time|completion_time|terminated_reason|deletion_timestamp)$'))
        and signal != 'kube_pod_status_unschedulable'
        -- kube-state-metrics reports all phases at once; these are enough.
        and phase in ('', 'Running', 'Succeeded', 'Failed')
        and (signal not like '%reason' or reason in ('Evicted', 'NodeLost', 'OOMKilled', 'Shutdown'))
        and (
            (cluster, namespace, pod) in (select (cluster, namespace, pod) from lake.owner_label)
            or (cluster, pod_uid) in (
                select (fraction.cluster, fraction.pod_uid)
                from lake.pod as fraction
                where coalesce(fraction.annotations['gpu-fraction'], fraction.annotations['gpu-memory']) is not null
            )
            or (cluster, pod_uid) in (
                select (request.cluster, request.pod_uid)
                from day.kube_series as request
                where request.signal like 'kube_pod%container_resource_requests' and regexp_matches(request.resource, '_(com|sh|ai|io)_')
            )
        )
),

-- Grouped by series first, because each series has hundreds of samples.
snapshots as (
    select
        cluster,
        series_id,
        min(epoch_ms(seen_at)) as start_ms,
        max(epoch_ms(seen_at) + round(held_seconds * 1000)::bigint) as end_ms,
        min(value) as value_min,
        max(value) as value_max,
        min(epoch_ms(seen_at)) filter (where value = 1) as true_from_ms,
        max(epoch_ms(seen_at) + round(held_seconds * 1000)::bigint) filter (where value = 1) as true_until_ms
    from lake.sample
    where (cluster, series_id) in (select (cluster, series_id) from series)
    group by cluster, series_id
),

snapshot as (
    select
        series.*,
        epoch_ms(snapshots.start_ms) as start_at,
        epoch_ms(snapshots.end_ms) as end_at,
        epoch_ms((snapshots.value_min * 1000)::bigint) as earliest_at,
        epoch_ms((snapshots.value_max * 1000)::bigint) as latest_at,
        epoch_ms(snapshots.true_from_ms) as true_from_at,
        epoch_ms(snapshots.true_until_ms) as true_until_at
    from snapshots
    inner join series
        using (cluster, series_id)
),

reported as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        min(earliest_at) filter (where signal = 'kube_pod_created') as created_at,
        min(earliest_at) filter (where signal = 'kube_pod_start_time') as accepted_at,
        min(earliest_at) filter (where signal = 'kube_pod_status_scheduled_time') as bound_at,
        max(latest_at) filter (where signal = 'kube_pod_completion_time') as completed_at,
        max(latest_at) filter (where signal = 'kube_pod_deletion_timestamp') as deadline_at,
        min(start_at) filter (where phase != '') as phase_from_at,
        min(true_from_at) filter (where phase = 'Running') as running_from_at,
        max(true_until_at) filter (where phase = 'Running') as running_until_at,
        min(true_from_at) filter (where phase in ('Succeeded', 'Failed')) as finished_at,
        arg_max(lower(phase), (phase != 'Running', true_until_at)) filter (where phase != '' and true_from_at is not null) as phase_outcome,
        max(reason) filter (where signal = 'kube_pod_status_reason' and true_until_at >= end_at) as status_reason,
        bool_or(signal = 'kube_pod_container_status_terminated_reason' and reason = 'OOMKilled' and true_from_at is not null) as was_killed,
        min(start_at) as listed_from_at,
        max(end_at) filter (where signal = 'kube_pod_info') as listed_until_at,
        arg_max(target, (end_at, target)) filter (where signal = 'kube_pod_info') as target
    from snapshot
    group by cluster, namespace, pod, pod_uid
),

-- A pod ends only by data of its own kube-state-metrics: a shard that fails ends none. Two minutes, because the last sample of a short
-- series may be valid for longer or shorter than those of other series.
gone as (
    select
        reported.*,
        case
            when reported.listed_until_at < watched.end_at - interval 2 minutes then reported.listed_until_at
            when reported.deadline_at is null or watched.next_start_at is null then watched.next_start_at
            else least(watched.next_start_at, greatest(reported.listed_until_at, reported.deadline_at))
        end as gone_at
    from reported
    left join day.kube_watch as watched
        on
            reported.cluster = watched.cluster
            and reported.target = watched.target
            and reported.listed_until_at > watched.start_at
            and reported.listed_until_at <= watched.end_at
),

-- A completion time belongs to the pod only if no later sample shows the pod running.
done as (
    select
        * replace (if(
            completed_at < running_until_at - interval 3 minutes and finished_at is null, null, completed_at
        ) as completed_at)
    from gone
)

select
    columns('^(cluster|namespace|pod|pod_uid|created_at|listed_from_at|listed_until_at|bound_at)$'),
    case
        when running_from_at > phase_from_at then running_from_at
        when running_from_at is not null then least(running_from_at, coalesce(accepted_at, created_at, running_from_at))
        when phase_from_at is null or finished_at is not null then coalesce(accepted_at, created_at)
    end as started_at,
    case
        when finished_at is not null or phase_from_at is null then coalesce(least(completed_at, finished_at), gone_at)
        when gone_at is not null then least(completed_at, gone_at)
    end as ended_at,
    case
        when phase_outcome = 'succeeded' then phase_outcome
        when status_reason = 'Evicted' then 'evicted'
        when status_reason in ('NodeLost', 'Shutdown') then 'node_shutdown'
        when phase_outcome = 'failed' and was_killed then 'out_of_memory'
        else phase_outcome
    end as outcome
from done
