-- Energy of each container on each of its devices: active, allocated idle, and its part of the idle baseline.
--
-- With idle and unattributed energy of the devices, the rows add up to the measured energy.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  period.device_power, period.figure, period.power, period.sensor_accuracy, period.sum
-- params: figure_min_coverage_ratio, idle_policy
-- source: facts.power_hour; energy: DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, else DCGM_FI_DEV_POWER_USAGE
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, energy_joules, active_joules, allocated_idle_joules,
--          idle_joules, active_joules_kepler, active_watts_avg, idle_watts, idle_source, observed_seconds, method, hours_method, scope,
--          active_joules_unweighted, charged_joules, active_watts_max, sm_active_watts, measured_seconds, energy_method, corrected_joules, energy_accuracy_ratio, active_seconds,
--          held_seconds, activity_unknown_seconds, equal_seconds, clamped_count, unknown_reasons
--   energy_joules             J in all: active, allocated idle, and idle; also known where idle power is not
--   active_joules             J above idle in active time: the container's share
--   idle_joules               J of the device's idle baseline while allocated, split as hours_method says; by compute slices under MIG
--   active_joules_kepler      J above idle by Kepler's shares, active or not
--   idle_watts                W, idle power of the whole device
--   observed_seconds          s in which the device had data while allocated
--   sm_active_watts           W above idle per unit of SM activity: active_watts_avg over the mean SM activity
--   active_seconds            s of active time of the device
with device as (
    select
        power.*,
        if(power.is_implausible, 'implausible', 'not_collected') as unmeasured_reason,
        accuracy.accuracy_ratio,
        coalesce(total.gpu_model, '') as gpu_model
    from period.device_power as power
    left join period.sum as total
        on
            power.cluster = total.cluster
            and power.device_uuid = total.device_uuid
            and total.gpu_instance_id = ''
            and total.subject = 'device'
    left join period.sensor_accuracy as accuracy on total.gpu_model = accuracy.gpu_model
),

-- A pool is the devices of one model in a cluster: its holders are charged for free devices, in proportion to their own idle energy.
pool as (
    select
        device.cluster,
        device.gpu_model,
        sum(device.known_idle_joules) / nullif(sum((
            select sum(power.known_idle_joules)
            from period.power as power
            where power.cluster = device.cluster and power.device_uuid = device.device_uuid
        )), 0) as pool_ratio
    from device
    group by device.cluster, device.gpu_model
),

charged as (
    select
        power.*,
        device.* similar to '^(energy_method|unmeasured_reason|accuracy_ratio)$',
        case $idle_policy
            when 'holder' then power.energy_joules
            when 'pool' then power.active_joules + power.allocated_idle_joules + power.idle_joules * coalesce(pool.pool_ratio, 1)
            else if(power.idle_joules is null, null, power.active_joules + power.allocated_idle_joules)
        end as charged_joules
    from period.power as power
    left join device
        using (cluster, device_uuid)
    left join pool
        using (cluster, gpu_model)
),

total as (
    from period.sum
    where subject = 'container_device'
),

judged as (
    select
        charged.*,
        total.sm_active_ratio_seconds / total.sm_active_seen_seconds as sm_active_ratio,
        charged.accuracy_ratio + charged.share_error_joules / nullif(charged.energy_joules, 0) as range_ratio,
        -- With unknown idle power all energy is active energy: a total, not the energy of the work.
        charged.idle_joules is null and contains(charged.idle_source, 'unknown') as is_total,
        case when charged.active_joules is null then charged.unmeasured_reason when is_total then 'idle_unknown' end as above_reason,
        case when charged.active_joules is null then charged.unmeasured_reason when charged.idle_joules is null then 'idle_unknown' end as idle_reason,
        coalesce(above_reason, if(charged.measured_seconds < $figure_min_coverage_ratio * charged.observed_seconds, 'low_coverage', null)) as watts_reason,
        case
            when watts_reason is not null then watts_reason
            when total.sm_active_seen_seconds < $figure_min_coverage_ratio * charged.observed_seconds then 'low_coverage'
            when total.sm_active_ratio_seconds = 0 then 'not_active'
            when total.sm_active_ratio_seconds is null then 'not_collected'
        end as sm_reason
    from charged
    left join total
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
)

select
    figure.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
    judged.energy_joules,
    if(judged.above_reason is null, columns('^(active|allocated_idle)_joules$'), null) as "\0",
    judged.idle_joules,
    if(judged.above_reason is null, judged.active_joules_kepler, null) as active_joules_kepler,
    if(judged.watts_reason is null, judged.active_joules / judged.measured_seconds, null) as active_watts_avg,
    judged.idle_watts,
    coalesce(judged.idle_source, 'unknown') as idle_source,
    figure.observed_seconds,
    coalesce(judged.method, 'none') as method,
    coalesce(judged.hours_method, 'none') as hours_method,
    coalesce(judged.scope, 'device') as scope,
    if(judged.above_reason is null, judged.active_joules_unweighted, null) as active_joules_unweighted,
    judged.charged_joules,
    if(judged.above_reason is null, judged.active_watts_max, null) as active_watts_max,
    if(judged.sm_reason is null, judged.active_joules / judged.measured_seconds / judged.sm_active_ratio, null) as sm_active_watts,
    coalesce(judged.measured_seconds, 0) as measured_seconds,
    coalesce(judged.energy_method, 'none') as energy_method,
    judged.corrected_joules,
    if(judged.range_ratio > 1, 1, judged.range_ratio) as energy_accuracy_ratio,
    judged.* similar to '^(active|held|activity_unknown|equal)_seconds$',
    coalesce(judged.clamped_count, 0) as clamped_count,
    unknown_reasons([
        (name, coalesce(judged.above_reason, if(judged.active_joules is null, 'not_collected', null)))
        for name in ['active_joules', 'allocated_idle_joules', 'active_joules_kepler', 'active_joules_unweighted']
    ] || [
        (name, if(judged.energy_joules is null, coalesce(judged.unmeasured_reason, 'not_collected'), null))
        for name in ['energy_joules', 'active_seconds', 'held_seconds', 'activity_unknown_seconds', 'equal_seconds']
    ] || [
        ('idle_joules', if(judged.idle_joules is null, coalesce(judged.idle_reason, 'not_collected'), null)),
        ('active_watts_avg', coalesce(judged.watts_reason, if(judged.active_joules is null, 'not_collected', null))),
        ('idle_watts', if(judged.idle_watts is null, coalesce(judged.idle_reason, 'not_collected'), null)),
        ('charged_joules', if(judged.charged_joules is null, coalesce(judged.idle_reason, 'not_collected'), null)),
        ('active_watts_max', case
            when judged.above_reason is not null then judged.above_reason
            when judged.active_joules is null then 'not_collected'
            when judged.active_watts_max is null then if(judged.active_seconds > 0, 'not_collected', 'not_active')
        end),
        ('corrected_joules', case
            when judged.energy_joules is null then coalesce(judged.unmeasured_reason, 'not_collected')
            when judged.corrected_joules is null then if(judged.energy_joules > 0, 'older_facts', 'no_time')
        end),
        ('energy_accuracy_ratio', case
            when judged.energy_joules is null then coalesce(judged.unmeasured_reason, 'not_collected')
            when judged.accuracy_ratio is null then 'accuracy_unknown'
            when judged.energy_joules = 0 then 'no_time'
        end),
        ('sm_active_watts', coalesce(judged.sm_reason, if(judged.active_joules is null, 'not_collected', null)))
    ]) as unknown_reasons
from period.figure as figure
left join judged
    using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
where figure.subject = 'container_device'
