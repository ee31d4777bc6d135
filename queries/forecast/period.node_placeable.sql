-- GPUs of each node available for pods in each step: allocated and free ones.
--
-- A node has no row for times in which it was not listed or took no pods, and for days without export. A node with unknown requests has all GPUs of
-- its telemetry.
--
-- grain:  cluster, node_name, start_at
-- reads:  facts.node_allocation, period.capacity
-- params: since_at, until_at
-- source: facts.node_allocation, else period.capacity
-- columns: cluster, node_name, start_at, gpu_model, resources, node_cpu_cores, node_memory_bytes, replica_gpus, resource_units,
--          placeable_gpus
--   start_at   UTC, start of the step; the step ends at the start of the next one
--   resources  resources of the node, as kube-state-metrics writes them; unknown where only telemetry shows the node
with placeable as (
    select columns('^(cluster|node_name|gpu_model|resources|node_cpu_cores|node_memory_bytes|replica_gpus|resource_units|gpu_count|start_at|end_at)$')
    from facts.node_allocation
    where state in ('allocated', 'free')
    union all by name
    select
        capacity.* similar to '^(cluster|node_name)$',
        max(capacity.gpu_model) as gpu_model,
        'unknown' as resources,
        count(*) as gpu_count,
        capacity.day as start_at,
        capacity.day + interval 1 day as end_at
    from period.capacity as capacity
    anti join facts.node_allocation
        using (cluster, node_name)
    where capacity.device_uuid != '' and capacity.unseen_cause is distinct from 'not_exported'
    group by all
),

edge as (
    select
        * exclude (start_at, end_at),
        unnest([
            { 'at': greatest(start_at, $since_at::timestamp), 'gpus': gpu_count },
            { 'at': least(end_at, $until_at::timestamp), 'gpus': -gpu_count }
        ]) as edge
    from placeable
    where start_at < $until_at and end_at > $since_at
),

changed as (
    select
        cluster,
        node_name,
        edge.at as start_at,
        sum(edge.gpus) as gpus,
        max(gpu_model) as model,
        max(resources) as names,
        max(node_cpu_cores) as cores,
        max(node_memory_bytes) as bytes,
        min(replica_gpus) as replica,
        any_value(resource_units order by start_at desc) as units
    from edge
    group by all
)

select
    columns('^(cluster|node_name|start_at)$'),
    max(model) over node as gpu_model,
    max(names) over node as resources,
    max(cores) over node as node_cpu_cores,
    max(bytes) over node as node_memory_bytes,
    min(replica) over node as replica_gpus,
    last_value(units ignore nulls) over (node order by start_at rows between unbounded preceding and unbounded following) as resource_units,
    round(sum(gpus) over (node order by start_at), 6) as placeable_gpus
from changed
where gpus != 0
window node as (partition by cluster, node_name)
