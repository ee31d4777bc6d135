-- CPU and memory of nodes for pods with GPUs, and what each pod requests of its node.
--
-- A node has its allocatable amount, less the mean requests of pods without GPUs. Only snapshots include init containers.
--
-- grain:  cluster, pod_uid, node_name
-- reads:  day.gpu_request, day.kube_series, lake.node, lake.pod, lake.sample
-- source: nodes: kube_node_status_allocatable, else Node status.allocatable; pods: Pod spec, else kube_pod_container_resource_requests
-- columns: cluster, pod_uid, node_name, cpu_cores, host_memory_bytes
--   pod_uid  uid of the pod; '' for the node itself
with series as (
    select
        series.* similar to '^(cluster|pod_uid|container|resource)$',
        if(series.pod_uid = '', series.node_name, '') as host,
        max(series.node_name) as node_name,
        max(sample.value) as units,
        sum(sample.held_seconds * if(series.resource = '', sample.value, 1)) as seconds
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where
        (series.pod_uid = '') = (series.signal = 'kube_node_status_allocatable')
        and (
            series.phase = 'Running'
            or series.resource in ('cpu', 'memory') and series.signal in ('kube_node_status_allocatable', 'kube_pod_container_resource_requests')
        )
    group by all
),

reported as (
    select
        columns('^(cluster|pod_uid)$'),
        'snapshot' as source,
        max(node_name) as node_name,
        coalesce(max(effective_requests['cpu']), 0) as cpu_cores,
        coalesce(max(effective_requests['memory']), 0) as host_memory_bytes,
        count(*) filter (where node_name != '' and phase not in ('Succeeded', 'Failed')) as weight
    from lake.pod
    group by cluster, pod_uid
    union all by name
    select
        cluster,
        '' as pod_uid,
        'snapshot' as source,
        node_name,
        avg(allocatable['cpu']) as cpu_cores,
        avg(allocatable['memory']) as host_memory_bytes,
        count(*) as weight
    from lake.node
    group by all
    union all by name
    select
        columns('^(cluster|pod_uid)$'),
        'kube-state-metrics' as source,
        max(node_name) as node_name,
        sum(units) filter (where resource = 'cpu') as cpu_cores,
        sum(units) filter (where resource = 'memory') as host_memory_bytes,
        max(seconds) filter (where resource = if(pod_uid = '', 'cpu', '')) as weight
    from series
    group by cluster, pod_uid, host
),

other as (
    select *
    from reported
    anti join day.gpu_request
        using (cluster, pod_uid)
    where pod_uid != ''
)

select
    one.* similar to '^(cluster|pod_uid|node_name)$',
    one.cpu_cores - coalesce(sum(other.cpu_cores * other.weight) / one.weight, 0) as cpu_cores,
    one.host_memory_bytes - coalesce(sum(other.host_memory_bytes * other.weight) / one.weight, 0) as host_memory_bytes
from reported as one
left join other
    on one.pod_uid = '' and one.cluster = other.cluster and one.source = other.source and one.node_name = other.node_name
group by one.cluster, one.pod_uid, one.node_name, one.source, one.weight, one.cpu_cores, one.host_memory_bytes
qualify row_number() over (
    partition by one.cluster, one.pod_uid, if(one.pod_uid = '', one.node_name, '')
    order by one.cpu_cores is null, (one.source = 'snapshot') = (one.pod_uid = '')
) = 1
