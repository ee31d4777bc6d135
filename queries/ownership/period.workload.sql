-- Workload and team of each holder in the window, the team by a label of its namespace.
--
-- Where days differ the largest name serves; a team that is not named is ''. Runs of a Job and bare pods whose names differ by a number
-- are one workload. A pod whose owner no source has is of the workload that its name reports (kind: by name).
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.pod_workload
-- parts:  500000 rows of facts.pod_workload by cluster, namespace, pod
-- params: team_label
with latest as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        max({ 'kind': workload_kind, 'name': workload }) as own,
        max(coalesce(
            namespace_labels[$team_label],
            namespace_labels['label_' || regexp_replace($team_label, '[^a-zA-Z0-9_]', '_', 'g')],
            ''
        )) as team
    from facts.pod_workload
    group by cluster, namespace, pod, pod_uid
)

select
    * exclude (own),
    coalesce(nullif(own.kind, ''), 'by name') as workload_kind,
    workload_of(own.kind, own.name, workload_by_name(pod)) as workload
from latest
