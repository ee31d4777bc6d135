-- Energy of GPUs with allocated MIG instances per step, by the activity of each instance.
--
-- Energy above idle in an active interval is split by activity x compute slices; activity is cut to 0..1. All instances of a GPU and hour use one
-- signal: engine activity where every instance has it, else SM activity where every one has it, else the signal that any has. Engine activity of 0
-- for all instances while the SMs are active is invalid. Energy of an active instance without a holder is unallocated. Where the activity of an
-- allocated instance is unknown, or is 0 for all, all count as equally active. Energy above idle in other intervals is in equal parts for all
-- holders. An instance has its part of the GPU's idle energy; no holder has the parts of free instances and of unsliced capacity.
--
-- Kepler's shares use activity unweighted and uncut, in active and other intervals. They leave out instances without activity or without a holder.
-- Where no instance has any, the energy is unallocated.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.mig_instance, day.power_step, lake.device_sample
-- source: DCGM_FI_PROF_GR_ENGINE_ACTIVE, DCGM_FI_PROF_SM_ACTIVE of the instances; Kepler internal/device/gpu
-- columns: cluster, device_uuid, gpu_instance_id, hour_start_at, start_at, instance_owner_count, slice_count, observed_seconds, measured_seconds, active_joules,
--          active_joules_unweighted, active_joules_kepler, allocated_idle_joules, idle_joules, active_seconds, activity_unknown_seconds, equal_seconds,
--          active_watts_max, clamped_count, steps, method
--   instance_owner_count      number of holders; 0 for an instance without a holder
with reading as (
    select
        instance.instance_number,
        greatest(sample.seen_at::timestamp, instance.start_at) as seen_at,
        held_until(sample.seen_at, sample.held_seconds) as until_at,
        case
            when instance.signal = 'sm' then sample.sm_active_ratio
            when instance.signal = 'engine' then sample.gr_engine_active_ratio
        end::decimal(18, 6) as last_ratio,
        is_active(null, sample.gr_engine_active_ratio, sample.sm_active_ratio, null, null) as is_instance_active
    from lake.device_sample as sample
    inner join day.mig_instance as instance
        using (cluster, device_uuid, gpu_instance_id)
    where
        date_trunc('hour', sample.seen_at::timestamp) = instance.hour_start_at
        and sample.seen_at < instance.end_at
        and held_until(sample.seen_at, sample.held_seconds) > instance.start_at
        and sample.gpu_instance_id != ''
),

-- The reading of each instance that is valid at a step of its GPU.
part as (
    select
        columns('^(interval_number|step_at|instance_number|instance_owner_count|slice_count)$'),
        if(reading.until_at > step.step_at, reading.last_ratio, null) as activity_ratio,
        if(reading.until_at > step.step_at, reading.is_instance_active, null) as is_instance_active,
        least(1, greatest(0, activity_ratio)) as cut_ratio,
        if(instance.instance_owner_count > 0 and activity_ratio > 0, activity_ratio, 0) as kepler_ratio
    from day.power_step as step
    inner join day.mig_instance as instance
        using (interval_number)
    asof left join reading
        on
            instance.instance_number = reading.instance_number
            and step.step_at >= reading.seen_at
),

whole as (
    select
        columns('^(interval_number|step_at)$'),
        bool_or(is_instance_active) as is_any_active,
        count_if(instance_owner_count > 0 and activity_ratio is null) = 0 as is_known,
        sum(cut_ratio)::double as all_ratio,
        sum(cut_ratio * slice_count)::double as all_slice_ratio,
        sum(kepler_ratio)::double as all_kepler_ratio
    from part
    group by interval_number, step_at
),

-- Values that all instances of an interval have in common are computed once.
step as (
    select
        *,
        greatest(is_board_active, is_any_active) as is_active,
        coalesce(is_active, true) as counts_active,
        is_known and all_ratio > 0 as is_reported,
        if(counts_active, above_joules, begun_joules) as active_joules,
        if(is_reported, active_joules / all_slice_ratio, 0 * active_joules) as joules_per_slice,
        if(is_reported, active_joules / all_ratio, 0 * active_joules) as joules_per_ratio,
        if(all_kepler_ratio > 0, above_joules / all_kepler_ratio, 0 * above_joules) as joules_per_kepler,
        if(counts_active and is_reported, above_watts / all_slice_ratio, null) as watts_per_slice,
        above_joules - active_joules as allocated_idle_joules
    from day.power_step
    inner join whole
        using (interval_number, step_at)
),

-- Sums of whole picojoules and picoseconds are the same in any order; DuckDB changes the order when memory is short.
power as (
    select
        interval_number,
        sum((columns('^(observed_seconds|measured_seconds|allocated_idle_joules|idle_joules)$') * 1e12)::hugeint) / 1e12,
        sum((if(counts_active, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as active_seconds,
        sum((if(is_active is null, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as activity_unknown_seconds,
        sum((if(counts_active and not is_reported, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as equal_seconds,
        sum((if(is_reported, 0, active_joules) * 1e12)::hugeint) / 1e12 as unreported_joules,
        sum((if(all_kepler_ratio > 0, 0, above_joules) * 1e12)::hugeint) / 1e12 as unreported_kepler_joules,
        max(if(counts_active and not is_reported, above_watts, null)) as unreported_watts_max
    from step
    group by interval_number
),

summed as (
    select
        part.instance_number,
        sum((part.cut_ratio * step.joules_per_slice * 1e12)::hugeint) / 1e12 as slice_joules,
        sum((part.cut_ratio * step.joules_per_ratio * 1e12)::hugeint) / 1e12 as ratio_joules,
        sum((part.kepler_ratio * step.joules_per_kepler * 1e12)::hugeint) / 1e12 as kepler_joules,
        max(part.cut_ratio * step.watts_per_slice) as slice_watts_max,
        count_if(part.activity_ratio != part.cut_ratio) as clamped_count
    from part
    inner join step
        using (interval_number, step_at)
    group by part.instance_number
),

listed as (
    select
        part.instance_number,
        list({
            'step_at': part.step_at,
            'seconds': step.observed_seconds,
            'active_seconds': if(step.counts_active, step.measured_seconds, 0),
            'active_joules': if(
                step.is_reported, part.cut_ratio * part.slice_count * step.joules_per_slice, instance.slice_share_ratio * step.active_joules
            ),
            'active_joules_unweighted': if(
                step.is_reported, part.cut_ratio * step.joules_per_ratio, instance.equal_share_ratio * step.active_joules
            ),
            'active_joules_kepler': case
                when step.all_kepler_ratio > 0 then part.kepler_ratio * step.joules_per_kepler
                when instance.signal = 'none' then instance.equal_share_ratio * step.above_joules
                else 0
            end
        } order by part.step_at) as steps
    from part
    inner join day.mig_instance as instance
        using (instance_number, interval_number)
    inner join step
        using (interval_number, step_at)
    where instance.has_util
    group by part.instance_number
)

select
    instance.* similar to '^(cluster|device_uuid|gpu_instance_id|start_at|hour_start_at|instance_owner_count|slice_count)$',
    power.observed_seconds,
    power.measured_seconds,
    summed.slice_joules * instance.slice_count + power.unreported_joules * instance.slice_share_ratio as active_joules,
    summed.ratio_joules + power.unreported_joules * instance.equal_share_ratio as active_joules_unweighted,
    summed.kepler_joules
    + if(instance.signal = 'none', power.unreported_kepler_joules * instance.equal_share_ratio, 0) as active_joules_kepler,
    power.allocated_idle_joules * instance.equal_share_ratio as allocated_idle_joules,
    power.idle_joules * instance.idle_share_ratio as idle_joules,
    power.* similar to '^(active_seconds|activity_unknown_seconds|equal_seconds)$',
    greatest(
        summed.slice_watts_max * instance.slice_count, power.unreported_watts_max * instance.slice_share_ratio
    ) as active_watts_max,
    summed.clamped_count,
    listed.steps,
    if(instance.signal = 'none', 'equal_share', 'activity_slice_share') as method
from summed
inner join day.mig_instance as instance on summed.instance_number = instance.instance_number
inner join power on instance.interval_number = power.interval_number
left join listed on summed.instance_number = listed.instance_number
