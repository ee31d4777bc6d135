-- GPUs of each node that pods could have had, step by step: allocated and free ones.
--
-- Time in which the node was not looked at, or took no pods, has none.
--
-- grain:  cluster, node_name, start_at
-- reads:  facts.node_allocation
-- params: since_at, until_at
-- source: facts.node_allocation
-- columns: cluster, node_name, start_at, gpu_model, resources, room_gpus
--   start_at   UTC, start of the step; its end is the next one's start
--   resources  resources of the node, as kube-state-metrics writes them
--   room_gpus  GPUs that are allocated or free
with edge as (
    select
        cluster,
        node_name,
        unnest([
            { 'at': greatest(start_at, $since_at::timestamp), 'gpus': gpu_count },
            { 'at': least(end_at, $until_at::timestamp), 'gpus': -gpu_count }
        ]) as edge
    from facts.node_allocation
    where state in ('allocated', 'free') and start_at < $until_at and end_at > $since_at
),

label as (
    select
        cluster,
        node_name,
        max(gpu_model) as gpu_model,
        max(resources) as resources
    from facts.node_allocation
    where start_at < $until_at and end_at > $since_at
    group by all
),

changed as (
    select
        cluster,
        node_name,
        edge.at as start_at,
        sum(edge.gpus) as gpus
    from edge
    group by all
),

stepped as (
    select
        *,
        round(sum(gpus) over (partition by cluster, node_name order by start_at), 6) as room_gpus
    from changed
)

select
    cluster,
    node_name,
    stepped.start_at,
    label.gpu_model,
    label.resources,
    stepped.room_gpus
from stepped
inner join label
    using (cluster, node_name)
qualify
    stepped.room_gpus is distinct from lag(stepped.room_gpus) over (partition by cluster, node_name order by stepped.start_at)
