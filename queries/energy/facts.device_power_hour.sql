-- Energy of each GPU per hour by use: idle, attributed, unattributed.
--
-- measured = idle + attributed + unattributed. Each is summed on its own, so that the closing error shows a mistake. Unallocated energy is energy
-- above idle of the unallocated GPU and of active instances without a holder. It includes growth over gaps of the counter without one certain holder
-- throughout.
--
-- revision: 9
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  day.claim_snapshot, day.energy_gap, day.gap_holder, day.power_activity, day.power_interval, day.power_step, facts.power_hour, facts.reserved_power_hour, lake.device_sample
-- columns: cluster, device_uuid, hour_start_at, layout, idle_watts, idle_source, measured_joules, counter_seconds, counter_joules,
--          integral_joules, step_joules, idle_joules, allocated_baseline_joules, measured_seconds, held_seconds, reserved_joules,
--          gap_joules, attributed_joules, unattributed_joules, corrected_joules, closing_error_joules
--   counter_joules        J, growth of the counter where power is also known
--   idle_joules           J of the idle baseline, allocated or not; null where the baseline is unknown
--   held_seconds          s of measured_seconds in which the GPU was allocated
with step as (
    select
        interval_number,
        sum(idle_joules) as idle_joules
    from day.power_step
    group by interval_number
),

-- Idle energy of intervals that are split sample by sample comes from those samples.
power as (
    select power.* replace (if(power.share in ('util', 'activity'), step.idle_joules, power.idle_joules) as idle_joules)
    from day.power_interval as power
    left join step on power.interval_number = step.interval_number
),

seen as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        any_value(layout) as layout,
        max(idle_watts) as idle_watts,
        any_value(idle_source) as idle_source,
        sum(columns('^(measured_joules|counter_seconds|counter_joules|integral_joules|idle_joules)$')),
        sum(if(owner_count = 0, active_joules + allocated_idle_joules, 0)) as free_joules,
        sum(if(owner_count = 0, null, idle_joules)) as allocated_baseline_joules,
        sum(measured_seconds) as measured_seconds,
        sum(if(owner_count = 0, 0, measured_seconds)) as held_seconds
    from power
    group by cluster, device_uuid, hour_start_at
),

-- Load starts or ends between two samples: during that time, power is between the two readings.
change as (
    select
        columns('^(cluster|device_uuid)$'),
        date_trunc('hour', seen_at)::timestamp as hour_start_at,
        held_seconds * abs(power_watts - lead(power_watts) over (
            partition by cluster, device_uuid, date_trunc('hour', seen_at)
            order by seen_at
        ))::double as step_joules
    from lake.device_sample
    where
        gpu_instance_id = '' and power_watts is not null
        and (cluster, device_uuid, date_trunc('hour', seen_at)::timestamp) in (
            select (seen.cluster, seen.device_uuid, seen.hour_start_at)
            from seen
            where abs(seen.counter_joules - seen.integral_joules) > 0.01 * greatest(seen.counter_joules, seen.integral_joules)
        )
),

judged as (
    select distinct cluster
    from lake.device_sample
    where is_energy_refused is not null
),

-- Other sums of a GPU and hour, each in its own columns.
part as (
    select *
    from change
    union all by name
    select
        columns('^(cluster|device_uuid|hour_start_at|gap_seconds)$'),
        idle_joules as gap_idle_joules,
        gap_part_joules as gap_joules,
        0 as free_gap_joules
    from day.gap_holder
    union all by name
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        unexplained_joules as gap_joules,
        unexplained_joules as free_gap_joules
    from day.energy_gap
    anti join day.gap_holder
        using (cluster, device_uuid, ended_at)
    union all by name
    select
        columns('^(cluster|device_uuid)$'),
        date_trunc('hour', seen_at)::timestamp as hour_start_at,
        power_watts::double * held_seconds as refused_joules
    from lake.device_sample
    where is_energy_refused and gpu_instance_id = ''
    union all by name
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        active_joules + allocated_idle_joules as attributed_joules
    from facts.power_hour
    union all by name
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        active_joules as bystander_joules
    from day.power_activity
    where instance_owner_count = 0
    union all by name
    select columns('^(cluster|device_uuid|hour_start_at|reserved_joules)$')
    from facts.reserved_power_hour
),

summed as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        sum(columns('_(seconds|joules)$'))
    from part
    group by cluster, device_uuid, hour_start_at
),

split as (
    select
        seen.* replace (
            if(summed.gap_seconds > 0, coalesce(seen.measured_seconds, 0) + summed.gap_seconds, seen.measured_seconds) as measured_seconds,
            if(summed.gap_seconds > 0, coalesce(seen.counter_seconds, 0) + summed.gap_seconds, seen.counter_seconds) as counter_seconds,
            if(summed.gap_seconds > 0, coalesce(seen.held_seconds, 0) + summed.gap_seconds, seen.held_seconds) as held_seconds,
            if(summed.gap_idle_joules > 0, coalesce(seen.idle_joules, 0) + summed.gap_idle_joules, seen.idle_joules) as idle_joules,
            if(summed.gap_idle_joules > 0, coalesce(seen.allocated_baseline_joules, 0) + summed.gap_idle_joules, seen.allocated_baseline_joules) as allocated_baseline_joules
        ),
        summed.step_joules,
        if(snapshot.cluster is null, null, coalesce(summed.reserved_joules, 0)) as reserved_joules,
        summed.free_gap_joules as gap_joules,
        if(judged.cluster is null, null, coalesce(summed.refused_joules, 0)) as refused_joules,
        coalesce(seen.measured_joules, 0) + coalesce(summed.gap_joules, 0) as all_joules,
        coalesce(summed.attributed_joules, 0) as attributed_joules,
        coalesce(seen.free_joules, 0) + coalesce(summed.bystander_joules, 0) + coalesce(summed.free_gap_joules, 0) as unattributed_joules,
        seen.measured_joules is not null or summed.gap_joules is not null as is_measured
    from seen
    left join summed
        using (cluster, device_uuid, hour_start_at)
    left join judged on seen.cluster = judged.cluster
    left join day.claim_snapshot as snapshot on seen.cluster = snapshot.cluster
)

select
    * exclude (free_joules, refused_joules, all_joules, is_measured) replace (
        if(is_measured, all_joules, null) as measured_joules,
        if(is_measured, attributed_joules, null) as attributed_joules,
        if(is_measured, unattributed_joules, null) as unattributed_joules,
        if(is_measured, reserved_joules, null) as reserved_joules,
        if(measured_seconds is null, null, held_seconds) as held_seconds
    ),
    if(is_measured and refused_joules is not null, least(refused_joules, all_joules), null) as corrected_joules,
    if(is_measured, round(all_joules - coalesce(idle_joules, 0) - split.attributed_joules - split.unattributed_joules, 6) + 0, null)
        as closing_error_joules
from split
