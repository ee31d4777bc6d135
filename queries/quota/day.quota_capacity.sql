-- Allocatable amount of each resource of a quota system on the nodes of a cluster, over time.
--
-- grain:  cluster, system, resource, start_at
-- reads:  day.quota_native, day.quota_node, day.quota_terms, day.quota_unit
-- source: kube_node_status_allocatable; Node status.allocatable
with system as (
    select distinct columns('^(cluster|system|resource)$')
    from day.quota_terms
),

allocatable as (
    select
        node.* exclude (resource),
        native.*
    from day.quota_node as node
    inner join day.quota_native as native
        on map([node.resource], [node.allocatable_native])::text = native.requests
    semi join system
        on
            node.cluster = system.cluster
            and native.system = system.system
            and native.resource = system.resource
    semi join day.quota_unit as unit
        on
            native.system = unit.system
            and native.resource = unit.resource
),

change as (
    select
        columns('^(cluster|system|resource)$'),
        unnest([
            { 'start_at': start_at, 'growth_native': amount_native::decimal(38, 9) },
            { 'start_at': end_at, 'growth_native': -amount_native::decimal(38, 9) }
        ], recursive := true)
    from allocatable
),

changed as (
    select
        * exclude (growth_native),
        sum(growth_native) as growth_native
    from change
    group by all
    having sum(growth_native) != 0
),

summed as (
    select
        * exclude (growth_native),
        lead(start_at) over one as end_at,
        sum(growth_native) over one as capacity_native
    from changed
    window one as (
        partition by cluster, system, resource
        order by start_at
    )
)

-- Without allocatable units nothing is known: the nodes had no data.
select
    * exclude (capacity_native),
    capacity_native::double as capacity_native
from summed
where end_at is not null and capacity_native > 0
