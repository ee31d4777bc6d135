-- kube-state-metrics series that later queries use, of several days once, with their labels unpacked into columns (maps are slow to read).
--
-- grain:  cluster, series_id
-- reads:  lake.series
-- source: kube-state-metrics
-- columns:
--   signal            name of the metric
--   reason            label reason: why a pod or container ended; '' without it
select distinct on (cluster, series_id)
    columns('^(cluster|series_id|signal)$'),
    coalesce(labels['job'], '') || '/' || coalesce(labels['instance'], '') as target,
    columns('^(namespace|pod|pod_uid|container)$'),
    coalesce(labels['exported_node'], labels['node'], '') as node_name,
    coalesce(labels['phase'], '') as phase,
    coalesce(labels['priority_class'], '') as priority_class,
    coalesce(labels['reason'], '') as reason,
    coalesce(labels['resource'], '') as resource,
    labels['label_nvidia_com_gpu_sharing_strategy'] as sharing_strategy,
    labels['label_nvidia_com_gpu_replicas'] as replicas
from lake.series
where
    scope = 'cluster'
    and signal in (
        'kube_node_labels',
        'kube_node_spec_unschedulable',
        'kube_node_status_allocatable',
        'kube_node_status_capacity',
        'kube_node_status_condition',
        'kube_pod_completion_time',
        'kube_pod_container_resource_requests',
        'kube_pod_container_state_started',
        'kube_pod_container_status_terminated_reason',
        'kube_pod_created',
        'kube_pod_deletion_timestamp',
        'kube_pod_info',
        'kube_pod_init_container_resource_requests',
        'kube_pod_start_time',
        'kube_pod_status_phase',
        'kube_pod_status_reason',
        'kube_pod_status_scheduled_time',
        'kube_pod_status_unschedulable'
    )
