-- Labels of each namespace: the latest of the day, else the nearest in time. One of them may name its team.
--
-- kube-state-metrics writes label_ before the name of a label, and '_' for characters other than letters and digits. Labels have both spellings.
--
-- grain:  cluster, namespace
-- reads:  lake.namespace, lake.sample, lake.series
-- source: Namespace metadata.labels; kube_namespace_labels
-- columns:
--   labels     label → value
with telemetry as (
    select
        cluster,
        max(date) as date
    from lake.series
    group by cluster
),

listed as (
    select
        columns('^(cluster|namespace)$'),
        max_by(labels, (
            -- A time after the day counts as far as the same time before it.
            if(observed_at::date > telemetry.date, telemetry.date - (observed_at::timestamp - telemetry.date - interval 1 day), observed_at::timestamp),
            observed_at
        )) as labels
    from lake.namespace
    left join telemetry
        using (cluster)
    group by cluster, namespace
),

reported as (
    select
        cluster,
        coalesce(labels['exported_namespace'], labels['namespace'], '') as namespace,
        max_by(labels, (seen_at, series_id)) as labels
    from lake.series
    left join lake.sample using (cluster, series_id)
    where signal = 'kube_namespace_labels'
    group by all
)

select
    columns('^(cluster|namespace)$'),
    map_concat(
        map_from_entries([
            entry for entry in map_entries(coalesce(reported.labels, map([]::varchar[], []::varchar[])))
            if starts_with(entry.key, 'label_')
        ]),
        coalesce(listed.labels, map([]::varchar[], []::varchar[]))
    ) as labels
from listed
full join reported
    using (cluster, namespace)
