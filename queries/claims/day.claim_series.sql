-- Resource claims of pods over time, from kube-state-metrics.
--
-- A pod uses its claims from its binding to its completion, although the series stay until the pod is deleted. The completion time counts only if no
-- later sample shows the pod running, because one of several containers may complete earlier. The series show neither claims for extended resources
-- nor the devices of a claim.
--
-- grain:  cluster, namespace, claim, pod, pod_uid
-- reads:  day.kube_series, lake.sample, lake.series
-- source: kube_pod_resourceclaim_info (kube-state-metrics 2.20), kube_pod_status_scheduled_time, _completion_time, _phase
-- columns:
--   start_at   UTC, binding of the pod, else first snapshot that reports it
--   end_at     UTC, completion of the pod, else end of the last snapshot
with series as (
    select
        * exclude (signal),
        labels['resourceclaim_name'] as claim
    from lake.series
    where
        scope = 'cluster'
        and signal = 'kube_pod_resourceclaim_info'
        and pod_uid != ''
        and coalesce(labels['resourceclaim_name'], '') != ''
),

time_series as (
    from day.kube_series
    where
        (
            signal in ('kube_pod_status_scheduled_time', 'kube_pod_completion_time')
            or (signal = 'kube_pod_status_phase' and phase = 'Running')
        )
        and (cluster, pod_uid) in (select (series.cluster, series.pod_uid) from series)
),

snapshot as (
    select
        cluster,
        series_id,
        min(seen_at)::timestamp as first_at,
        make_timestamp_ms(max(epoch_ms(seen_at) + round(held_seconds * 1000)::bigint)) as last_until_at,
        make_timestamp_ms(max(epoch_ms(seen_at) + round(held_seconds * 1000)::bigint) filter (where value = 1)) as true_until_at,
        make_timestamp_ms(round(max(value) * 1000)::bigint) as value_at
    from lake.sample
    where
        (cluster, series_id) in (
            select (series.cluster, series.series_id)
            from series
            union all
            select (time_series.cluster, time_series.series_id)
            from time_series
        )
    group by cluster, series_id
),

life as (
    select
        time_series.cluster,
        time_series.pod_uid,
        max(snapshot.value_at) filter (where time_series.signal = 'kube_pod_status_scheduled_time') as bound_at,
        max(snapshot.value_at) filter (where time_series.signal = 'kube_pod_completion_time') as completed_at,
        max(snapshot.true_until_at) filter (where time_series.signal = 'kube_pod_status_phase') as running_until_at,
        -- Three minutes, because a sample of the phase is valid for some time.
        if(completed_at < running_until_at - interval 3 minutes, null, completed_at) as ended_at
    from time_series
    inner join snapshot
        using (cluster, series_id)
    group by time_series.cluster, time_series.pod_uid
),

reported as (
    select
        series.* similar to '^(cluster|namespace|claim|pod|pod_uid)$',
        min(snapshot.first_at) as first_at,
        max(snapshot.last_until_at) as last_until_at
    from series
    inner join snapshot
        using (cluster, series_id)
    group by all
)

select
    reported.* exclude (first_at, last_until_at),
    coalesce(life.bound_at, reported.first_at) as start_at,
    least(reported.last_until_at, life.ended_at) as end_at
from reported
left join life
    using (cluster, pod_uid)
where coalesce(life.bound_at, reported.first_at) < least(reported.last_until_at, life.ended_at)
