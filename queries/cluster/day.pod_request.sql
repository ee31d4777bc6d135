-- Accelerators that each container requests; sidecars are init containers.
--
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  day.kube_series
-- source: kube-state-metrics kube_pod_container_resource_requests, whose names have '_' for '.', '/' and '-'
-- columns:
--   resources  names of the resources, sorted
select
    columns('^(cluster|namespace|pod|pod_uid|container)$'),
    list_sort(list(distinct resource)) as resources
from day.kube_series
where
    signal in ('kube_pod_container_resource_requests', 'kube_pod_init_container_resource_requests')
    and pod != ''
    and is_accelerator(resource)
group by all
