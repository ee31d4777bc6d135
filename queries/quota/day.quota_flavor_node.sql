-- Nodes of each of Kueue's flavors; '' is all nodes. A node with unknown labels is in every flavor.
--
-- grain:  cluster, flavor, node_name
-- reads:  day.quota_flavor, day.quota_node, lake.node
-- source: ResourceFlavor objects; Node labels
with node as (
    select
        cluster,
        node_name,
        arg_max(labels, observed_at) as labels
    from lake.node
    group by all
    union by name
    select
        cluster,
        node_name
    from day.quota_node
    anti join lake.node
        using (cluster, node_name)
),

flavor as (
    select
        cluster,
        flavor,
        any_value(labels) as labels
    from day.quota_flavor
    group by all
)

select
    node.cluster,
    flavor.flavor,
    node.node_name
from node
inner join flavor
    using (cluster)
where
    node.labels is null
    or list_bool_and([true] || list_transform(
        map_entries(flavor.labels), lambda label: coalesce(node.labels[label.key] = label.value, false)
    ))
union by name
select
    cluster,
    '' as flavor,
    node_name
from node
