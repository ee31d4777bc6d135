-- Workload and team of each holder in the window; a label of the namespace gives the team.
--
-- Where days differ, the largest name counts; a team without a name is ''. Runs of a Job are one workload, and so are bare pods whose names differ by
-- a number. A pod without an owner in any source belongs to the workload in its name (kind: by name).
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
from (
    -- Labels without a uid are of a day without data of Kubernetes: other days know the pod of that name.
    select * replace (if(pod_uid = '', max(own) over (partition by cluster, namespace, pod), own) as own)
    from latest
) as named
