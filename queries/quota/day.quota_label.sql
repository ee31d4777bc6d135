-- nos capacity label of each pod over time: from kube-state-metrics while it exports the label, else from snapshots of pods.
--
-- grain:  cluster, pod_uid, start_at
-- reads:  day.state_snapshot, lake.pod, lake.sample, lake.series
-- source: kube_pod_labels (label_nos_nebuly_com_capacity); Pod label nos.nebuly.com/capacity
with reported as (
    select
        series.cluster,
        series.pod_uid,
        series.labels['label_nos_nebuly_com_capacity'] as label,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from lake.series
    inner join lake.sample
        using (cluster, series_id)
    where series.signal = 'kube_pod_labels' and series.pod_uid != '' and coalesce(label, '') != ''
),

step as (
    from reported
    union all by name
    select
        pod.cluster,
        pod.pod_uid,
        pod.labels['nos.nebuly.com/capacity'] as label,
        snapshot.observed_at as start_at,
        snapshot.stands_until_at as end_at
    from lake.pod
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    anti join merged_runs(reported, '^(cluster|pod_uid)$') as covered
        on
            pod.cluster = covered.cluster
            and pod.pod_uid = covered.pod_uid
            and snapshot.observed_at < covered.end_at
            and snapshot.stands_until_at > covered.start_at
    where
        snapshot.kind = 'pods'
        and coalesce(label, '') != ''
),

cut as (
    select
        cluster,
        pod_uid,
        max(label) as label,
        start_at,
        least(max(end_at), lead(start_at) over (
            partition by cluster, pod_uid
            order by start_at
        )) as end_at
    from step
    group by cluster, pod_uid, start_at
)

select *
from merged_runs(cut, '^(cluster|pod_uid|label)$')
