-- Capacity available to a quota system over time: node capacity, minus pods outside quotas, plus hypothetical GPUs of a simulation.
--
-- Capacity is never less than the quotas' total allocated amount, even if fewer nodes are known. Without allocatable units it is unknown.
--
-- grain:  cluster, system, resource, start_at
-- reads:  day.quota_amount, day.quota_capacity, day.quota_unit, period.quota_outside
-- params: added_gpus
-- Several ResourceQuotas with the same namespace and scopes count the same pods.
with allocated as (
    select
        columns('^(cluster|system|resource|flavor|start_at|end_at)$'),
        if(system = 'kubernetes', namespaces::text || coalesce(scopes, ''), quota) as holder,
        max(delivered_native) as allocated_native
    from day.quota_amount
    where not is_parent
    group by all
),

part as (
    from day.quota_capacity
    union all by name
    select distinct
        outside.*,
        capacity.resource
    from period.quota_outside as outside
    inner join day.quota_capacity as capacity
        using (cluster, system)
    union all by name
    select
        columns('^(cluster|system|resource|start_at|end_at)$'),
        sum(allocated_native) as allocated_native
    from allocated
    group by cluster, system, resource, flavor, start_at, end_at
),

change as (
    select
        columns('^(cluster|system|resource)$'),
        unnest([{ 'start_at': start_at, 'sign': 1 }, { 'start_at': end_at, 'sign': -1 }], recursive := true),
        coalesce(columns('^(capacity_native|outside_gpus|allocated_native)$'), 0) as "\0"
    from part
),

changed as (
    select
        columns('^(cluster|system|resource|start_at)$'),
        sum((sign * capacity_native)::decimal(38, 6)) as capacity_growth,
        sum((sign * outside_gpus)::decimal(38, 9)) as outside_growth,
        sum((sign * allocated_native)::decimal(38, 6)) as allocated_growth
    from change
    group by all
),

summed as (
    select
        *,
        lead(start_at) over one as end_at,
        sum(capacity_growth) over one as capacity_native,
        sum(outside_growth) over one as outside_gpus,
        sum(allocated_growth) over one as allocated_native
    from changed
    window one as (
        partition by cluster, system, resource
        order by start_at
    )
)

select
    summed.* similar to '^(cluster|system|resource|start_at|end_at)$',
    (
        greatest(0, summed.allocated_native, summed.capacity_native - summed.outside_gpus / unit.gpus_per_native)
        + $added_gpus / unit.gpus_per_native
    )::double as capacity_native
from summed
inner join day.quota_unit as unit
    using (system, resource)
where summed.end_at is not null and summed.capacity_native > 0
