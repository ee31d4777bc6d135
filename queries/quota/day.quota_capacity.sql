-- Allocatable amount of each resource that a quota system shares on the nodes of a cluster, over time: KAI's without nodes that are not ready or
-- cordoned, Volcano's without nodes that are not ready.
--
-- grain:  cluster, system, resource, start_at
-- reads:  day.node_outage, day.quota_native, day.quota_node, day.quota_scope
-- source: kube_node_status_allocatable; Node status
with allocatable as (
    select
        native.system,
        native.resource,
        node.* similar to '^(cluster|node_name|start_at|end_at)$',
        native.amount_native as amount
    from day.quota_node as node
    inner join day.quota_native as native
        on map([node.resource], [node.allocatable_native])::text = native.requests
    semi join day.quota_scope as known
        on (node.cluster, native.system, native.resource) = (known.cluster, known.system, known.resource)
),

outage as (
    select
        * exclude (cause),
        unnest(if(cause = 'not_ready', ['kai', 'volcano'], ['kai'])) as system
    from day.node_outage
),

shared as (
    select * exclude (node_name)
    from allocatable
    union all by name
    select
        allocatable.* exclude (node_name)
        replace (greatest(allocatable.start_at, down.start_at) as start_at, least(allocatable.end_at, down.end_at) as end_at, -amount as amount)
    from allocatable
    inner join merged_runs(outage, '^(cluster|system|node_name)$') as down
        using (cluster, system, node_name)
    where allocatable.start_at < down.end_at and allocatable.end_at > down.start_at
)

-- Without allocatable units the capacity is unknown: the nodes had no data.
select
    * exclude (amount),
    amount::double as capacity_native
from running_amounts(shared, (cluster, system, resource))
where amount > 0
