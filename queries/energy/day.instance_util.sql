-- Energy of the sharers of a MIG instance per step, by their own utilization where it is measured.
--
-- The rules are those of a whole GPU (day.power_util). Parts are equal where the utilization of one sharer is unknown, or is 0 for all. In Kepler's
-- shares a sharer without a value has 0. NVML has no utilization of processes on an instance, so the values come from another source.
--
-- grain:  cluster, holder_number
-- reads:  day.allocated_interval, day.power_activity, day.sharer_series, day.util_reading
with instance as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        unnest(steps, recursive := true)
    from day.power_activity
    where steps is not null
),

part as (
    select
        allocated.* exclude (device_uuid, gpu_instance_id, start_at),
        instance.* exclude (cluster)
    from day.allocated_interval as allocated
    inner join instance
        using (cluster, device_uuid, gpu_instance_id, start_at)
),

their_reading as (
    from day.util_reading
    where holder_number in (select holder_number from part)
),

measured as (
    select
        part.*,
        if(reading.until_at > part.step_at, reading.weight, null) as weight
    from part
    asof left join their_reading as reading
        using (holder_number, step_at)
),

named as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        max(scope) as scope,
        min(method) as method
    from day.sharer_series
    group by cluster, device_uuid, gpu_instance_id, start_at
),

shared as (
    select
        measured.*,
        sum(measured.weight) over sharers as all_weight,
        (count(measured.weight) over sharers = measured.instance_owner_count or named.method = 'kepler_share') and all_weight > 0 as is_reported,
        if(is_reported, coalesce(measured.weight, 0) / all_weight, 1 / measured.instance_owner_count) as share_ratio,
        if(all_weight > 0, coalesce(measured.weight, 0) / all_weight, 1 / measured.instance_owner_count) as kepler_share_ratio
    from measured
    inner join named
        using (cluster, device_uuid, gpu_instance_id, start_at)
    window sharers as (
        partition by
            measured.cluster, measured.device_uuid, measured.gpu_instance_id, measured.start_at, measured.step_at
    )
),

summed as (
    select
        holder_number,
        sum(active_joules * share_ratio) as active_joules,
        sum(active_joules_unweighted * share_ratio) as active_joules_unweighted,
        sum(active_joules_kepler * kepler_share_ratio) as active_joules_kepler,
        sum(if(is_reported, 0, active_seconds)) as equal_seconds,
        max(if(active_seconds > 0, active_joules * share_ratio / seconds, null)) as active_watts_max
    from shared
    group by holder_number
)

select
    allocated.cluster,
    summed.*,
    named.method,
    named.scope
from summed
inner join day.allocated_interval as allocated on summed.holder_number = allocated.holder_number
inner join named
    using (cluster, device_uuid, gpu_instance_id, start_at)
