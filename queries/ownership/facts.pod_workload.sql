-- Workload and namespace labels of each pod with GPUs, by telemetry or requests; one label may name its team.
--
-- A ReplicaSet named after a Deployment and a hash counts as the Deployment. The workload is '' if no source has the pod. A holder without a uid is
-- matched by pod name.
--
-- revision: 4
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  day.namespace_label, day.pod_controller, facts.node_allocation, facts.ownership
-- columns: cluster, namespace, pod, pod_uid, workload_kind, workload, namespace_labels
--   workload_kind     Deployment, StatefulSet, Job, …; Pod without a controller; '' where unknown
with holder as (
    select distinct columns('^(cluster|namespace|pod|pod_uid)$')
    from facts.ownership
    union by name
    select columns('^(cluster|namespace|pod|pod_uid)$')
    from facts.node_allocation
    where pod != ''
),

named as (
    select
        columns('^(cluster|namespace|pod)$'),
        max_by({ 'kind': maker_kind, 'name': maker }, pod_uid) as latest
    from day.pod_controller
    group by cluster, namespace, pod
),

made as (
    select
        holder.*,
        if(holder.pod_uid = '', named.latest.kind, own.maker_kind) as kind,
        if(holder.pod_uid = '', named.latest.name, own.maker) as name,
        -- The hash in names of a Deployment's pods has no vowels and no 0, 1 or 3.
        kind = 'ReplicaSet' and regexp_matches(name, '-[bcdfghjklmnpqrstvwxz2456789]{5,10}$') as is_of_deployment
    from holder
    left join day.pod_controller as own
        using (cluster, namespace, pod, pod_uid)
    left join named
        using (cluster, namespace, pod)
)

select
    made.* exclude (kind, name, is_of_deployment),
    if(made.is_of_deployment, 'Deployment', coalesce(made.kind, '')) as workload_kind,
    if(made.is_of_deployment, regexp_replace(made.name, '-[^-]+$', ''), coalesce(made.name, '')) as workload,
    coalesce(label.labels, map([]::varchar[], []::varchar[])) as namespace_labels
from made
left join day.namespace_label as label
    using (cluster, namespace)
