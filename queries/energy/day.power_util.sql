-- Energy of shared GPUs per step, split by each holder's own utilization.
--
-- Energy above idle in an active interval is split by the sharers' utilization at its start. Parts are equal where the utilization of one sharer is
-- unknown, or is 0 for all. Energy above idle in other intervals is in equal parts. Idle energy is split like hours (day.allocated_interval). Where
-- Kepler's watts are the weights, a sharer that Kepler shows at other times has 0 while Kepler shows another. Watts are no sign of activity. Kepler's
-- shares follow the same rules, active or not; a sharer without a value has 0.
--
-- grain:  cluster, holder_number
-- reads:  day.allocated_interval, day.power_interval, day.power_step, day.sharer_series, day.util_reading
with named as (
    select
        columns('^(cluster|device_uuid|start_at)$'),
        max(scope) as scope,
        min(method) as method,
        bool_and(method = 'kepler_share') as is_watts
    from day.sharer_series
    group by cluster, device_uuid, start_at
),

sharer as (
    select
        allocated.*,
        allocated.hours_ratio * allocated.instance_owner_count / allocated.owner_count as idle_ratio,
        power.interval_number,
        named.* exclude (cluster, device_uuid, start_at)
    from day.allocated_interval as allocated
    inner join day.power_interval as power
        using (cluster, device_uuid, start_at)
    inner join named
        using (cluster, device_uuid, start_at)
    where power.share = 'util'
),

-- Most readings are scraped together with the GPU, so they start with its intervals.
reading as (
    select
        sharer.* exclude (is_watts),
        reading.step_at,
        reading.weight
    from day.util_reading as reading
    inner join sharer on reading.holder_number = sharer.holder_number
),

scraped_whole as (
    select
        columns('^(interval_number|step_at)$'),
        sum((weight * 1e9)::bigint) / 1e9 as all_weight
    from reading
    group by interval_number, step_at
    having count(*) = any_value(owner_count)
),

-- For other intervals, the readings that are valid count.
other_step as (
    select
        step.interval_number,
        step.step_at
    from day.power_step as step
    anti join scraped_whole
        using (interval_number, step_at)
    where step.interval_number in (select sharer.interval_number from sharer)
),

other_part as (
    select
        other_step.*,
        sharer.* exclude (interval_number)
    from other_step
    inner join sharer on other_step.interval_number = sharer.interval_number
),

other_reading as (
    select *
    from day.util_reading
    where holder_number in (select other_part.holder_number from other_part)
),

other as (
    select
        other_part.*,
        if(reading.until_at > other_part.step_at, reading.weight, null) as weight
    from other_part
    asof left join other_reading as reading
        using (holder_number, step_at)
),

other_whole as (
    select
        columns('^(interval_number|step_at)$'),
        sum((weight * 1e9)::bigint) / 1e9 as all_weight,
        count(weight) = any_value(owner_count) or any_value(is_watts) as is_known
    from other
    group by interval_number, step_at
),

whole as (
    select
        *,
        true as is_known,
        true as is_scraped
    from scraped_whole
    union all by name
    select
        *,
        false as is_scraped
    from other_whole
),

shared_interval as (
    select distinct columns('^(interval_number|owner_count|is_watts)$')
    from sharer
),

-- Values that all sharers of an interval have in common are computed once.
step as (
    select
        step.*,
        whole.is_scraped,
        whole.all_weight,
        greatest(step.is_board_active, if(power.is_watts, null, whole.all_weight > 0)) as is_active,
        coalesce(is_active, true) as counts_active,
        whole.is_known and coalesce(whole.all_weight > 0, false) as is_reported,
        if(counts_active, step.above_joules, step.begun_joules) as active_joules,
        if(is_reported, active_joules / whole.all_weight, 0 * active_joules) as joules_per_weight,
        if(whole.all_weight > 0, step.above_joules / whole.all_weight, 0 * step.above_joules) as kepler_joules_per_weight,
        if(counts_active and is_reported, step.above_watts / whole.all_weight, null) as watts_per_weight
    from day.power_step as step
    inner join whole
        using (interval_number, step_at)
    inner join shared_interval as power on step.interval_number = power.interval_number
),

-- Sums of whole picojoules and picoseconds are the same in any order; DuckDB changes the order when memory is short.
power as (
    select
        interval_number,
        sum((columns('^(observed_seconds|measured_seconds|idle_joules)$') * 1e12)::hugeint) / 1e12,
        sum(((above_joules - active_joules) * 1e12)::hugeint) / 1e12 as allocated_idle_joules,
        sum((if(counts_active, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as active_seconds,
        sum((if(is_active is null, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as activity_unknown_seconds,
        sum((if(counts_active and not is_reported, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as equal_seconds,
        sum((if(is_reported, 0, active_joules) * 1e12)::hugeint) / 1e12 as unreported_joules,
        sum((if(all_weight > 0, 0, above_joules) * 1e12)::hugeint) / 1e12 as unreported_kepler_joules,
        max(if(counts_active and not is_reported, above_watts, null)) as unreported_watts_max
    from step
    group by interval_number
),

part as (
    select
        * exclude (owner_count),
        true as is_scraped
    from reading
    union all by name
    select
        * exclude (weight),
        coalesce(weight, 0) as weight,
        false as is_scraped
    from other
),

summed as (
    select
        part.holder_number,
        sum((part.weight * step.joules_per_weight * 1e12)::hugeint) / 1e12 as joules,
        sum((part.weight * step.kepler_joules_per_weight * 1e12)::hugeint) / 1e12 as kepler_joules,
        max(part.weight * step.watts_per_weight) as watts_max
    from part
    inner join step
        using (interval_number, step_at, is_scraped)
    group by part.holder_number
)

select
    sharer.cluster,
    sharer.holder_number,
    power.observed_seconds,
    power.measured_seconds,
    summed.joules + power.unreported_joules / sharer.owner_count as active_joules,
    summed.kepler_joules + power.unreported_kepler_joules / sharer.owner_count as active_joules_kepler,
    power.allocated_idle_joules / sharer.owner_count as allocated_idle_joules,
    power.idle_joules * sharer.idle_ratio as idle_joules,
    power.* similar to '^(active_seconds|activity_unknown_seconds|equal_seconds)$',
    greatest(summed.watts_max, power.unreported_watts_max / sharer.owner_count) as active_watts_max,
    sharer.method,
    sharer.scope
from sharer
inner join summed on sharer.holder_number = summed.holder_number
inner join power on sharer.interval_number = power.interval_number
