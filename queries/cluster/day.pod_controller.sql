-- Controller of each pod by kind and name; a pod without a controller is its own.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  lake.pod, lake.series
-- source: Pod metadata.ownerReferences; kube_pod_info (created_by_kind, created_by_name)
with reported as (
    select
        *,
        epoch_us(observed_at)::hugeint as rank
    from lake.pod
    union all by name
    select
        *,
        if(labels['created_by_kind'] = '<none>', '', coalesce(labels['created_by_kind'], '')) as owner_kind,
        if(labels['created_by_kind'] = '<none>', '', coalesce(labels['created_by_name'], '')) as owner_name,
        -1 - series_id::hugeint as rank
    from lake.series
    where signal = 'kube_pod_info' and pod_uid != ''
)

select
    columns('^(cluster|namespace|pod|pod_uid)$'),
    if(max_by(owner_kind, rank) = '', 'Pod', max_by(owner_kind, rank)) as maker_kind,
    if(max_by(owner_kind, rank) = '', pod, max_by(owner_name, rank)) as maker
from reported
where pod != ''
group by cluster, namespace, pod, pod_uid
