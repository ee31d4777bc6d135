-- What nodes offer to the quotas of a system, and when: less what pods outside of them hold, and more by GPUs that are thought of.
--
-- grain:  cluster, system, resource, start_at
-- reads:  facts.quota_capacity, facts.quota_outside, facts.quota_unit
-- params: added_gpus
-- source: facts.quota_capacity, facts.quota_outside
-- columns:
--   cluster          cluster name
--   system           quota system
--   resource         resource as the quota names it
--   start_at         UTC, start of the stretch
--   end_at           UTC, its end, outside it
--   capacity_native  what there is to share, in the resource's own unit
--   capacity_gpus    the same in GPUs
with edge as (
    select
        cluster,
        system,
        resource,
        unnest([start_at, end_at]) as start_at
    from facts.quota_capacity
    union
    select
        capacity.cluster,
        capacity.system,
        capacity.resource,
        unnest([
            greatest(outside.start_at, capacity.start_at),
            least(outside.end_at, capacity.end_at)
        ]) as start_at
    from facts.quota_capacity as capacity
    inner join facts.quota_outside as outside
        on
            capacity.cluster = outside.cluster
            and capacity.system = outside.system
            and capacity.start_at < outside.end_at
            and capacity.end_at > outside.start_at
),

slice as (
    select
        *,
        lead(start_at) over (
            partition by cluster, system, resource
            order by start_at
        ) as end_at
    from edge
)

select
    slice.cluster,
    slice.system,
    slice.resource,
    slice.start_at,
    slice.end_at,
    greatest(
        0, capacity.capacity_native + ($added_gpus - coalesce(outside.held_gpus, 0)) / unit.gpus_per_native
    )::double as capacity_native,
    greatest(0, capacity.capacity_gpus + $added_gpus - coalesce(outside.held_gpus, 0))::double as capacity_gpus
from slice
inner join facts.quota_unit as unit
    on
        slice.system = unit.system
        and slice.resource = unit.resource
-- Where nothing is offered, nothing is known.
inner join facts.quota_capacity as capacity
    on
        slice.cluster = capacity.cluster
        and slice.system = capacity.system
        and slice.resource = capacity.resource
        and slice.start_at >= capacity.start_at
        and slice.start_at < capacity.end_at
left join facts.quota_outside as outside
    on
        slice.cluster = outside.cluster
        and slice.system = outside.system
        and slice.start_at >= outside.start_at
        and slice.start_at < outside.end_at
where slice.end_at is not null
