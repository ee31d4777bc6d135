-- Allocatable amount of each resource of a quota system on the nodes of a cluster, over time.
--
-- grain:  cluster, system, resource, start_at
-- reads:  day.quota_native, day.quota_node, day.quota_scope
-- source: kube_node_status_allocatable; Node status.allocatable
with allocatable as (
    select
        native.system,
        native.resource,
        node.* similar to '^(cluster|start_at|end_at)$',
        native.amount_native as amount
    from day.quota_node as node
    inner join day.quota_native as native
        on map([node.resource], [node.allocatable_native])::text = native.requests
    semi join day.quota_scope as known
        on
            node.cluster = known.cluster
            and native.system = known.system
            and native.resource = known.resource
)

-- Without allocatable units the capacity is unknown: the nodes had no data.
select
    * exclude (amount),
    amount::double as capacity_native
from running_amounts(allocatable, (cluster, system, resource))
where amount > 0
