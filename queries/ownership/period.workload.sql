-- Workload and team of each holder in the window, the team by a label of its namespace.
--
-- Where days differ the largest name serves; a team that is not named is ''.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.pod_workload
-- params: team_label
-- source: facts.pod_workload
-- columns:
--   workload_kind  Deployment, StatefulSet, Job, …; '' where unknown
--   team           value of the label; '' where the namespace bears none, or its labels are unknown
with named as (
    select
        *,
        coalesce(
            namespace_labels[$team_label],
            namespace_labels['label_' || regexp_replace($team_label, '[^a-zA-Z0-9_]', '_', 'g')],
            ''
        ) as team
    from facts.pod_workload
)

select
    cluster,
    namespace,
    pod,
    pod_uid,
    max({ 'kind': workload_kind, 'name': workload }).kind as workload_kind,
    max({ 'kind': workload_kind, 'name': workload }).name as workload,
    max(team) as team
from named
group by cluster, namespace, pod, pod_uid
