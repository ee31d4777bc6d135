-- Energy of the GPUs by day, namespace, node and model; namespace '' is energy without a holder.
--
-- The rows add up to the measured energy: energy of holders (active, allocated idle, idle), of free GPUs, and unattributed energy. reserved_joules is
-- a part of the unallocated energy, shown on the namespace's own row.
--
-- grain:  cluster, day, namespace, node_name, gpu_model
-- reads:  facts.device_hour, facts.device_power_hour, facts.energy_hour, facts.reserved_power_hour, period.sensor_accuracy, period.team
-- params: since_at, timezone, until_at
-- columns: cluster, day, namespace, node_name, gpu_model, team, energy_joules, energy_kwh, energy_method, corrected_joules, energy_accuracy_ratio, active_joules, allocated_idle_joules,
--          idle_joules, unattributed_joules, unsplit_joules, never_active_joules, reserved_joules, power_watts_avg, measured_seconds, unknown_reasons
--   energy_joules        J in all: active, allocated idle, idle, unattributed and unsplit
--   idle_joules          J of the idle baseline, of allocated and of free GPUs
--   reserved_joules      J unallocated, of GPUs that a claim of the namespace reserved while no container held them
--   power_watts_avg      W, energy_joules without growth over gaps, divided by the measured time
--   measured_seconds     s with known energy, of each holder and of the unallocated part
with place as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        max(columns('^(node_name|gpu_model)$'))
    from facts.device_hour
    group by cluster, device_uuid, hour_start_at
),

listed as (
    select
        cluster,
        local_time(hour_start_at, $timezone)::date as day,
        count(reserved_joules) > 0 as is_in_snapshot
    from facts.device_power_hour
    group by all
),

part as (
    from facts.energy_hour
    where energy_joules is not null
    union all by name
    select
        reserved.*,
        place.node_name,
        place.gpu_model
    from facts.reserved_power_hour as reserved
    inner join place
        using (cluster, device_uuid, hour_start_at)
    where is_in_period(reserved.hour_start_at, $since_at, $until_at)
),

summed as (
    select
        part.* similar to '^(cluster|namespace|node_name|gpu_model)$',
        local_time(part.hour_start_at, $timezone)::date as day,
        if(min(part.energy_method) = max(part.energy_method), min(part.energy_method), 'mixed') as energy_method,
        sum(part.corrected_joules) as corrected_joules,
        any_value(accuracy.accuracy_ratio) as sensor_ratio,
        sensor_ratio + if(sum(part.energy_joules) > 0, sum(part.share_error_joules) / sum(part.energy_joules), 0) as energy_accuracy_ratio,
        coalesce(sum(columns('^(energy|active|allocated_idle|idle|unattributed|gap|never_active)_joules$')), 0) as "\0",
        count(part.unattributed_joules) as part_count,
        if(max(part.energy_joules) > 0 and count(part.idle_joules) = 0, 'idle_unknown', null) as idle_reason,
        if(count(part.claim_uid) = 0, 0, sum(part.reserved_joules)) as seen_reserved_joules,
        coalesce(sum(part.measured_seconds), 0) as measured_seconds
    from part
    left join period.sensor_accuracy as accuracy
        using (gpu_model)
    group by part.cluster, day, part.namespace, part.node_name, part.gpu_model
),

split as (
    select
        *,
        energy_joules - active_joules - allocated_idle_joules - idle_joules - unattributed_joules as rest_joules,
        if(part_count > 0 and rest_joules > 1e-9 * energy_joules, round(rest_joules, 6), 0) as unsplit_joules,
        if(unsplit_joules > 0 and active_joules + allocated_idle_joules + idle_joules = 0, 'idle_unknown', null) as split_reason
    from summed
)

select
    summed.* similar to '^(cluster|day|namespace|node_name|gpu_model)$',
    coalesce(team.team, '') as team,
    summed.energy_joules,
    summed.energy_joules / 3.6e6 as energy_kwh,
    coalesce(summed.energy_method, 'none') as energy_method,
    summed.corrected_joules,
    if(summed.energy_accuracy_ratio > 1, 1, summed.energy_accuracy_ratio) as energy_accuracy_ratio,
    if(summed.split_reason is null, columns(['active_joules', 'allocated_idle_joules']), null),
    if(summed.idle_reason is null, summed.idle_joules, null) as idle_joules,
    summed.* similar to '^(unattributed_joules|unsplit_joules|never_active_joules)$',
    if(listed.is_in_snapshot, summed.seen_reserved_joules, null) as reserved_joules,
    (summed.energy_joules - summed.gap_joules) / nullif(summed.measured_seconds, 0) as power_watts_avg,
    summed.measured_seconds,
    unknown_reasons([(name, summed.split_reason) for name in ['active_joules', 'allocated_idle_joules']] || [
        ('idle_joules', summed.idle_reason),
        ('corrected_joules', case when summed.corrected_joules is null then if(summed.energy_joules > 0, 'older_facts', 'not_collected') end),
        ('energy_accuracy_ratio', if(summed.energy_accuracy_ratio is null, if(summed.sensor_ratio is null, 'accuracy_unknown', 'older_facts'), null)),
        ('reserved_joules', if(listed.is_in_snapshot, if(summed.seen_reserved_joules is null, 'not_collected', null), 'not_looked_at')),
        ('power_watts_avg', if(summed.measured_seconds = 0, 'no_time', null))
    ]) as unknown_reasons
from split as summed
left join period.team as team
    using (cluster, namespace)
left join listed
    using (cluster, day)
where summed.measured_seconds > 0 or summed.energy_joules > 0 or summed.seen_reserved_joules > 0
