-- kube-state-metrics series for later queries: one row per series over several days, with labels as columns (maps are slow to read).
--
-- grain:  cluster, series_id
-- reads:  lake.series
-- source: kube-state-metrics
-- columns:
--   signal            name of the metric
--   reason            label reason: cause of the end of a pod or container; '' without the label
select distinct on (cluster, series_id)
    columns('^(cluster|series_id|signal)$'),
    coalesce(labels['job'], '') || '/' || coalesce(labels['instance'], '') as target,
    columns('^(namespace|pod|pod_uid|container)$'),
    coalesce(labels['exported_node'], if(bool_or('exported_node' in labels) over (partition by cluster, target), '', labels['node']), '') as node_name,
    coalesce(labels['phase'], '') as phase,
    coalesce(labels['priority_class'], '') as priority_class,
    coalesce(labels['reason'], '') as reason,
    coalesce(labels['resource'], '') as resource,
    labels['label_nvidia_com_gpu_sharing_strategy'] as sharing_strategy,
    labels['label_nvidia_com_gpu_replicas'] as replicas,
    labels['label_nvidia_com_gpu_memory'] as gpu_memory
from lake.series
where
    scope = 'cluster'
    and regexp_matches(signal, '^kube_(node_(labels|spec|status)|pod_(completion|created|deletion|info|sta|.*container_(resource_requests|sta)))')
