-- Extended resources of accelerators in the cluster, by the name that each source writes.
--
-- Kubernetes writes nvidia.com/mig-1g.5gb, kube-state-metrics nvidia_com_mig_1g_5gb. Because '_' replaces '.', '/' and '-', only names of known
-- vendors can be restored. A device may have several names (Koordinator's and the device plugin's): never add names.
--
-- grain:  cluster, written_as
-- reads:  day.kube_series, lake.node, lake.pod
-- source: Node status.allocatable, Pod requests, kube_node_status_*, kube_pod_container_resource_requests
-- columns:
--   resource      name as Kubernetes writes it; for Koordinator before version 1.2, with its present domain
--   is_opencosts  whether OpenCost's gauges count it: nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-*
-- Distinct requests only, because many pods and snapshots have equal requests.
with requested as (
    select distinct
        cluster,
        map_keys(effective_requests) as names
    from lake.pod
),

written as (
    select
        cluster,
        resource as written_as
    from day.kube_series
    where resource != ''
    union by name
    select
        cluster,
        unnest(map_keys(allocatable)) as written_as
    from lake.node
    union by name
    select
        cluster,
        unnest(names) as written_as
    from requested
),

split as (
    select
        *,
        regexp_extract(written_as, '^((?:[a-z0-9]+[._-])+?(?:com|ai|sh|io))[/_](.+)$', ['domain', 'name']) as part
    from written
    where is_accelerator(written_as) or regexp_matches(written_as, '^(koordinator.sh|kubernetes.io)[/_](rdma|fpga)')
),

named as (
    select
        *,
        contains(written_as, '/') as is_as_kubernetes_writes_it,
        -- Koordinator's names before version 1.2 were kubernetes.io/gpu-core and so on.
        if(replace(part.domain, '_', '.') = 'kubernetes.io', 'koordinator.sh', part.domain) as domain,
        part.name
    from split
)

select
    cluster,
    written_as,
    case
        when is_as_kubernetes_writes_it then domain
        when domain = 'metax_tech_com' then 'metax-tech.com'
        else replace(domain, '_', '.')
    end || '/' || case
        when is_as_kubernetes_writes_it then name
        when name like 'mig\_%' escape '\' then 'mig-' || replace(substring(name, 5), '_', '.')
        when name = 'gpu_shared' then 'gpu.shared'
        when name in ('neuroncore', 'neurondevice', 'neuron') then name
        when name similar to 'Ascend.*|cpx_.*|spx_.*|dpx_.*|qpx_.*' then name
        else replace(name, '_', '-')
    end as resource,
    resource = 'nvidia.com/gpu' or resource = 'nvidia.com/gpu.shared' or starts_with(resource, 'nvidia.com/mig-') as is_opencosts,
    gpu_units(resource) as unit_gpus
from named
