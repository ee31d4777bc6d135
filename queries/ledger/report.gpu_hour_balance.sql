-- GPU-hours of capacity and of each ledger bucket, by cluster, day, model and node.
--
-- Capacity comes from period.capacity alone. Each dimension contains all GPU-hours: never add rows of different dimensions.
--
-- grain:  cluster, dimension, value
-- reads:  period.capacity, period.ledger
-- columns: cluster, dimension, value, device_count, capacity_gpu_hours, effective_gpu_hours, underutilized_gpu_hours,
--          active_unmeasured_gpu_hours, allocated_unmeasured_gpu_hours, allocated_idle_gpu_hours, reserved_idle_gpu_hours, fragmented_gpu_hours,
--          free_gpu_hours, unknown_gpu_hours, unavailable_gpu_hours, difference_gpu_hours
--   dimension             cluster, day, gpu_model or node_name
--   value                 value of the dimension; '' where unknown
--   difference_gpu_hours  h, capacity less the sum of the buckets
with part as (
    select
        * exclude (device_count),
        if(device_uuid = '', device_count, 0) as unseen_count,
        capacity_seconds / 3600 as capacity_gpu_hours
    from period.capacity
    union all by name
    select *
    from period.ledger
),

sided as (
    select
        cluster,
        unnest([
            { 'dimension': 'cluster', 'value': cluster },
            { 'dimension': 'day', 'value': day::varchar },
            { 'dimension': 'gpu_model', 'value': gpu_model },
            { 'dimension': 'node_name', 'value': node_name }
        ], recursive := true),
        * exclude (cluster)
    from part
),

-- GPUs without an exporter have no name: those of a node count beyond its GPUs with a name, by the day with the most GPUs.
daily as (
    select
        columns('^(cluster|dimension|value|node_name|day)$'),
        sum(if(device_uuid = '', unseen_count, 1)) as device_count,
        list(device_uuid) filter (where device_uuid != '') as device_uuids
    from sided
    where capacity_gpu_hours is not null
    group by all
),

unseen as (
    select
        columns('^(cluster|dimension|value|node_name)$'),
        greatest(0, max(device_count) - coalesce(len(list_distinct(flatten(list(device_uuids)))), 0)) as unseen_count
    from daily
    group by all
),

counted as (
    select
        columns('^(cluster|dimension|value)$'),
        sum(unseen_count) as unseen_count
    from unseen
    group by all
),

summed as (
    select
        columns('^(cluster|dimension|value)$'),
        count(distinct device_uuid) filter (where device_uuid != '') as seen_count,
        sum(capacity_gpu_hours) as capacity_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'effective'), 0) as effective_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'underutilized'), 0) as underutilized_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'active_unmeasured'), 0) as active_unmeasured_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_unmeasured'), 0) as allocated_unmeasured_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), 0) as allocated_idle_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'reserved_idle'), 0) as reserved_idle_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'fragmented'), 0) as fragmented_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'free'), 0) as free_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'unknown'), 0) as unknown_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'unavailable'), 0) as unavailable_gpu_hours,
        coalesce(sum(gpu_hours), 0) as all_gpu_hours
    from sided
    group by all
)

select
    summed.* similar to '^(cluster|dimension|value)$',
    (summed.seen_count + coalesce(counted.unseen_count, 0))::bigint as device_count,
    summed.* exclude (cluster, dimension, value, seen_count, all_gpu_hours),
    -- Sums of many hours differ in the last digits: a difference below a millisecond is 0.
    round(summed.capacity_gpu_hours - summed.all_gpu_hours, 6) + 0 as difference_gpu_hours
from summed
left join counted
    using (cluster, dimension, value)
