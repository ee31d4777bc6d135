-- Extended resources of accelerators in the cluster, by the name that each source writes.
--
-- Kubernetes writes nvidia.com/mig-1g.5gb, kube-state-metrics nvidia_com_mig_1g_5gb: '_' stands for '.', '/' and '-', so names of known
-- makers alone can be restored. A device may be advertised under several names (Koordinator's beside the device plugin's): never add names.
-- Network cards are advertised under nvidia.com too, and Intel's plugin has names that give a monitor sight of all GPUs of a node: neither is here.
--
-- grain:  cluster, written_as
-- reads:  day.kube_series, lake.node, lake.pod
-- source: Node status.allocatable, Pod requests, kube_node_status_*, kube_pod_container_resource_requests
-- columns:
--   resource      name as Kubernetes writes it; Koordinator's before version 1.2 under today's domain
--   is_opencosts  one of those that OpenCost's gauges count: nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-*
-- Pods with equal requests are many, and their snapshots more.
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

-- Domains of makers of accelerators, and of schedulers that share them out.
split as (
    select
        *,
        regexp_extract(
            written_as,
            '^(nvidia.com|amd.com|gpu.intel.com|habana.ai|google.com|aws.amazon.com|k8s.amazonaws.com|huawei.com|cambricon.com'
            || '|hygon.com|dcu.com|metax.tech.com|mthreads.com|enflame.com|iluvatar.ai|iluvatar.com|kunlunxin.com|baidu.com|birentech.com'
            || '|tencent.com|aliyun.com|qualcomm.com|furiosa.ai|rebellions.ai|tenstorrent.com|volcano.sh|koordinator.sh|kubernetes.io)'
            || '[/_](.+)$',
            ['domain', 'name']
        ) as part
    from written
),

named as (
    select
        *,
        contains(written_as, '/') as is_as_kubernetes_writes_it,
        -- Koordinator's names before version 1.2 were kubernetes.io/gpu-core and so on.
        if(replace(part.domain, '_', '.') = 'kubernetes.io', 'koordinator.sh', part.domain) as domain,
        part.name
    from split
    where
        part.domain != ''
        and (
            part.domain not similar to '(volcano|koordinator|kubernetes).(sh|io)'
            or part.name similar to '(gpu|vgpu|rdma|fpga).*'
        )
        and not (
            replace(part.domain, '_', '.') = 'nvidia.com'
            and regexp_matches(lower(part.name), '^hostdev|nics?($|[^a-z])|sriov|rdma|roce|mlnx|infiniband|^ib[0-9_-]|(^|[_-])vfs?$')
        )
        and not (replace(part.domain, '_', '.') = 'gpu.intel.com' and ends_with(part.name, '_monitoring'))
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
