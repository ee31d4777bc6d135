-- Energy of each GPU per ownership interval: measured, idle part, and how the rest is split.
--
-- Idle energy is the baseline's part of the measured energy, at most all of it. It is computed in total for active time and for the rest, so noise of
-- samples near the baseline adds no energy. Intervals that are split sample by sample have their sums in day.power_step. Where the baseline is
-- unknown, all measured energy counts as above it, and readers show it as the total. Where the counter's growth in an hour is under a quarter of ∫P
-- by 10 kJ or more, one of them is wrong: the hour's energy is unknown.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  day.allocated_interval, day.device_layout, day.energy_edge, day.idle_baseline, day.ownership_interval, day.sample_sum, day.sharer_series
-- columns:
--   interval_number      number of the row: a short key
with board as (
    from day.sample_sum
    where gpu_instance_id = ''
),

device_hour as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        coalesce(sum(energy_joules) < 0.25 * sum(counter_integral_joules) - 10000, false) as is_doubtful
    from board
    group by all
),

power as (
    select
        device_hour.*,
        coalesce(power.start_at, device_hour.hour_start_at) as start_at,
        coalesce(power.end_at, device_hour.hour_start_at + interval 1 hour) as end_at
    from device_hour
    left join day.ownership_interval as power
        using (cluster, device_uuid, hour_start_at)
),

holder as (
    select
        columns('^(cluster|device_uuid|start_at)$'),
        count(*) as owner_count,
        bool_and(gpu_instance_id != '') as is_mig
    from day.allocated_interval
    group by cluster, device_uuid, start_at
),

reported as (
    select distinct columns('^(cluster|device_uuid|start_at)$')
    from day.sharer_series
),

based as (
    select
        power.*,
        row_number() over (order by power.cluster, power.device_uuid, power.start_at)::uinteger as interval_number,
        coalesce(holder.owner_count, 0) as owner_count,
        case
            when holder.owner_count is null then 'none'
            when holder.is_mig then 'activity'
            when holder.owner_count = 1 then 'alone'
            when reported.start_at is not null then 'util'
            else 'equal'
        end as share,
        coalesce(device_layout.layout, '') as layout,
        baseline.idle_watts,
        coalesce(baseline.idle_source, 'unknown') as idle_source
    from power
    left join holder
        using (cluster, device_uuid, start_at)
    left join reported
        using (cluster, device_uuid, start_at)
    left join day.device_layout
        using (cluster, device_uuid, hour_start_at)
    left join day.idle_baseline as baseline
        on
            power.cluster = baseline.cluster
            and power.device_uuid = baseline.device_uuid
            and coalesce(device_layout.layout, '') = baseline.layout
),

edged as (
    select distinct columns('^(cluster|device_uuid)$')
    from day.energy_edge
),

step as (
    select
        board.* exclude (begun_joules),
        -- For a GPU with a counter, day.energy_edge reports the samples without it.
        if(edged.device_uuid is null, board.powered_seconds, null) as alone_seconds,
        if(
            board.energy_seen_seconds is null and alone_seconds is null,
            null,
            coalesce(board.energy_seen_seconds, 0) + coalesce(alone_seconds, 0)
        ) as measured_seconds,
        if(
            measured_seconds is null,
            null,
            coalesce(board.energy_joules, 0) + if(alone_seconds is null, 0, board.powered_joules)
        ) as measured_joules,
        board.energy_seen_seconds as counter_seconds,
        board.counter_compared_joules as counter_joules,
        board.counter_integral_joules as integral_joules,
        coalesce(board.counter_active_seconds, 0) + if(alone_seconds is null, 0, coalesce(board.powered_active_seconds, 0)) as active_seconds,
        coalesce(board.counter_active_joules, 0) + if(alone_seconds is null, 0, coalesce(board.powered_active_joules, 0)) as active_joules,
        coalesce(board.begun_joules, 0) as begun_joules,
        coalesce(board.counter_unknown_seconds, 0)
        + if(alone_seconds is null, 0, coalesce(board.powered_unknown_seconds, 0)) as activity_unknown_seconds
    from board
    left join edged
        using (cluster, device_uuid)
    union all by name
    -- The time of an edge counts already; only its energy is added.
    select
        *,
        date_trunc('hour', start_at) as hour_start_at,
        0 as observed_seconds,
        epoch_ms(end_at - start_at) / 1000 as measured_seconds,
        reported_joules as measured_joules,
        if(coalesce(is_active, true), measured_seconds, 0) as active_seconds,
        if(coalesce(is_active, true), reported_joules, 0) as active_joules,
        0 as begun_joules,
        if(is_active is null, measured_seconds, 0) as activity_unknown_seconds
    from day.energy_edge
    where reported_joules is not null and end_at > start_at
),

-- A segment that a change of owners cuts is split by time.
placed as (
    select
        based.interval_number,
        based.is_doubtful,
        step.*,
        if(
            step.start_at >= based.start_at and step.end_at <= based.end_at,
            1,
            epoch(least(step.end_at, based.end_at) - greatest(step.start_at, based.start_at))
            / epoch(step.end_at - step.start_at)
        ) as part_ratio
    from based
    inner join step
        using (cluster, device_uuid, hour_start_at)
    where
        step.start_at < based.end_at
        and step.end_at > based.start_at
),

summed as (
    select
        interval_number,
        sum(observed_seconds * part_ratio) as observed_seconds,
        if(any_value(is_doubtful), null, sum(measured_seconds * part_ratio)) as measured_seconds,
        sum(columns('^((counter|active|activity_unknown)_seconds|(measured|counter|integral|active|begun)_joules)$') * part_ratio),
        max(columns('^(active|power)_watts_max$'))
    from placed
    group by interval_number
),

split as (
    select
        based.*,
        summed.* exclude (interval_number),
        -- Without idle power, all energy counts as active.
        coalesce(based.idle_watts, 0) as known_idle_watts,
        least(summed.active_joules, known_idle_watts * summed.active_seconds) as active_idle_joules,
        least(
            summed.measured_joules - summed.active_joules, known_idle_watts * (summed.measured_seconds - summed.active_seconds)
        ) as rest_idle_joules,
        summed.active_joules - active_idle_joules as above_joules,
        summed.measured_joules - summed.active_joules - rest_idle_joules as rest_joules
    from based
    inner join summed on based.interval_number = summed.interval_number
)

select
    * exclude (is_doubtful, begun_joules, known_idle_watts, active_idle_joules, rest_idle_joules, above_joules, rest_joules) replace (
        if(measured_seconds is null, null, measured_joules) as measured_joules,
        if(measured_seconds is null, null, coalesce(counter_seconds, 0)) as counter_seconds,
        if(measured_seconds is null, null, above_joules + greatest(0, least(begun_joules, rest_joules))) as active_joules,
        if(measured_seconds is null, null, active_seconds) as active_seconds,
        if(measured_seconds is null, null, activity_unknown_seconds) as activity_unknown_seconds,
        if(active_watts_max is null, null, greatest(0, active_watts_max - coalesce(idle_watts, 0))) as active_watts_max
    ),
    if(measured_seconds is null or idle_watts is null, null, active_idle_joules + rest_idle_joules) as idle_joules,
    if(measured_seconds is null, null, rest_joules - greatest(0, least(begun_joules, rest_joules))) as allocated_idle_joules
from split
