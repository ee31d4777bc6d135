-- GPUs of each node that pods could have had, step by step: allocated and free ones.
--
-- Time in which the node was not listed, or took no pods, has none.
--
-- grain:  cluster, node_name, start_at
-- reads:  facts.node_allocation
-- params: since_at, until_at
-- source: facts.node_allocation
-- columns: cluster, node_name, start_at, gpu_model, resources, placeable_gpus
--   start_at   UTC, start of the step; its end is the next one's start
--   resources  resources of the node, as kube-state-metrics writes them
with edge as (
    select
        * exclude (start_at, end_at),
        unnest([
            { 'at': greatest(start_at, $since_at::timestamp), 'gpus': gpu_count },
            { 'at': least(end_at, $until_at::timestamp), 'gpus': -gpu_count }
        ]) as edge
    from facts.node_allocation
    where state in ('allocated', 'free') and start_at < $until_at and end_at > $since_at
),

changed as (
    select
        cluster,
        node_name,
        edge.at as start_at,
        sum(edge.gpus) as gpus,
        max(gpu_model) as model,
        max(resources) as names
    from edge
    group by all
)

select
    columns('^(cluster|node_name|start_at)$'),
    max(model) over node as gpu_model,
    max(names) over node as resources,
    round(sum(gpus) over (node order by start_at), 6) as placeable_gpus
from changed
where gpus != 0
window node as (partition by cluster, node_name)
