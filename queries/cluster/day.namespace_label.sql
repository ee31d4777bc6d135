-- Labels of each namespace, the latest of the day; one of them may name its team.
--
-- kube-state-metrics writes a label's name with label_ before it and _ for what is no letter or digit; both spellings stand here.
--
-- grain:  cluster, namespace
-- reads:  lake.namespace, lake.sample, lake.series
-- source: Namespace metadata.labels; kube_namespace_labels
-- columns:
--   labels     label → value
with listed as (
    select
        cluster,
        namespace,
        max_by(labels, observed_at) as labels
    from lake.namespace
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
    coalesce(listed.cluster, reported.cluster) as cluster,
    coalesce(listed.namespace, reported.namespace) as namespace,
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
