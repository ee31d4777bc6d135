-- Which GPU resources each container asked for.
--
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  lake.series
-- params:
-- source: kube-state-metrics kube_pod_container_resource_requests, whose names have '_' for '.', '/' and '-'
-- columns:
--   cluster    cluster name
--   namespace  namespace of the pod
--   pod        name of the pod
--   pod_uid    its uid
--   container  its container
--   resources  names of the resources, sorted
with request as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        labels['resource'] as resource
    from lake.series
    where scope = 'cluster' and signal = 'kube_pod_container_resource_requests' and pod != ''
)

select
    cluster,
    namespace,
    pod,
    pod_uid,
    container,
    list_sort(list(distinct resource)) as resources
from request
where regexp_matches(resource, '^(nvidia_com_|amd_com_|gpu_intel_com_)')
group by all
