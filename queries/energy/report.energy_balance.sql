-- Energy balance of the GPUs by cluster, day, node, model, team, namespace and workload.
--
-- The rows of each dimension add up to the measured energy: never add rows of different dimensions. '(unallocated or unknown)' is energy of free
-- GPUs, of GPUs with an unknown holder, and unattributed. A namespace without the team label is a team. '(unknown)' is pods with an unknown workload.
-- Workloads are added from days, without mean or maximum power.
--
-- grain:  cluster, dimension, value
-- reads:  facts.device_day, facts.energy_hour, facts.power_day, period.device_power, period.sensor_accuracy, period.team, period.workload
-- params: timezone
-- source: facts.energy_hour, facts.power_day; label of the namespace that owners.team_label names
-- columns: cluster, dimension, value, energy_joules, energy_kwh, energy_method, corrected_joules, energy_accuracy_ratio, active_joules, allocated_idle_joules, idle_joules,
--          unattributed_joules, unsplit_joules, never_active_joules, power_watts_avg, hour_power_watts_max, sm_active_watts, measured_gpu_hours, unknown_reasons
--   dimension             cluster, day, node_name, gpu_model, team, namespace or workload
--   value                 value of the dimension; workloads as namespace/kind/name
--   energy_joules         J in all: active, allocated idle, idle, unattributed and unsplit
--   power_watts_avg       W, mean of power_watts over hours (facts.energy_hour)
--   sm_active_watts       W above idle per unit of SM activity of a whole GPU
with named as (
    select
        energy.*,
        local_time(energy.hour_start_at, $timezone)::date as day,
        if(energy.is_allocated, coalesce(nullif(team.team, ''), energy.namespace), '(unallocated or unknown)') as team,
        energy.energy_joules * accuracy.accuracy_ratio as rated_joules,
        if(accuracy.accuracy_ratio is null and energy.energy_joules > 0, 1, 0) as unrated_count,
        if(energy.corrected_joules is null and energy.energy_joules > 0, 1, 0) as uncounted_count
    from facts.energy_hour as energy
    left join period.team as team
        using (cluster, namespace)
    left join period.sensor_accuracy as accuracy
        using (gpu_model)
    where energy.energy_joules is not null
),

grouped as (
    select
        columns('^(cluster|hour_start_at|day|node_name|gpu_model|team|namespace)$'),
        bool_or(is_allocated) as is_allocated,
        min(energy_method) as least_method,
        max(energy_method) as largest_method,
        sum(columns('_joules$|^sm_|^un(rated|counted)_|^measured_gpu_')),
        max(device_measured_seconds_max) as measured_seconds,
        sum(power_watts) as power_watts
    from named
    group by grouping sets (
        (cluster, hour_start_at),
        (cluster, hour_start_at, day),
        (cluster, hour_start_at, node_name),
        (cluster, hour_start_at, gpu_model),
        (cluster, hour_start_at, team),
        (cluster, hour_start_at, namespace)
    )
),

hour as (
    select
        *,
        case
            when namespace is not null then 'namespace'
            when team is not null then 'team'
            when gpu_model is not null then 'gpu_model'
            when node_name is not null then 'node_name'
            when day is not null then 'day'
            else 'cluster'
        end as dimension,
        case
            when dimension = 'cluster' then cluster
            when dimension = 'day' then day::varchar
            when dimension = 'team' then team
            when coalesce(node_name, gpu_model) = '' then '(unknown)'
            when namespace is null then coalesce(node_name, gpu_model)
            when not is_allocated then '(unallocated or unknown)'
            else namespace
        end as value
    from grouped
),

rated as (
    select
        device.* similar to '^(cluster|device_uuid|day)$',
        max(accuracy.accuracy_ratio) as accuracy_ratio
    from facts.device_day as device
    inner join period.sensor_accuracy as accuracy
        using (gpu_model)
    group by device.cluster, device.device_uuid, device.day
),

holder as (
    select
        allocated.* exclude (measured_seconds, active_joules, allocated_idle_joules, sm_active_gpu_seconds, sm_active_joules, known_gpu_seconds),
        if(allocated.idle_joules is null, null, columns('^(active_joules|allocated_idle_joules|sm_active_gpu_seconds|sm_active_joules)$')),
        device.energy_method,
        allocated.active_joules * share_error_ratio(allocated.method, allocated.equal_seconds, allocated.active_seconds) as share_error_joules,
        allocated.active_joules + allocated.allocated_idle_joules + coalesce(allocated.idle_joules, 0) as energy_joules,
        if(
            sum(allocated.active_seconds) over (
                partition by allocated.cluster, allocated.namespace, allocated.pod, allocated.pod_uid, allocated.container, allocated.device_uuid, allocated.gpu_instance_id, allocated.day
            ) = 0,
            allocated.allocated_idle_joules + coalesce(allocated.idle_joules, 0), 0
        ) as never_active_joules,
        -- Facts of older revisions do not have this column.
        coalesce(allocated.known_gpu_seconds, allocated.gpu_seconds) as known_gpu_seconds,
        rated.accuracy_ratio
    from facts.power_day as allocated
    left join period.device_power as device
        using (cluster, device_uuid)
    left join rated
        using (cluster, device_uuid, day)
    where allocated.active_joules is not null
),

summed as (
    select
        columns('^(cluster|dimension|value)$'),
        if(min(least_method) = max(largest_method), min(least_method), 'mixed') as energy_method,
        sum(columns('_joules$|^sm_|^un(rated|counted)_')),
        sum(measured_gpu_seconds) / 3600 as measured_gpu_hours,
        sum(power_watts * measured_seconds) / nullif(sum(measured_seconds), 0) as power_watts_avg,
        max(power_watts) as hour_power_watts_max
    from hour
    group by cluster, dimension, value
),

each_dimension as (
    select
        holder.cluster,
        'workload' as dimension,
        concat_ws('/', holder.namespace, owner.workload_kind, coalesce(nullif(owner.workload, ''), '(unknown)')) as value,
        if(min(holder.energy_method) = max(holder.energy_method), min(holder.energy_method), 'mixed') as energy_method,
        sum(columns('_joules$')),
        0 as unattributed_joules,
        sum(holder.energy_joules * holder.accuracy_ratio) as rated_joules,
        count(*) filter (where holder.accuracy_ratio is null and holder.energy_joules > 0) as unrated_count,
        count(*) filter (where holder.corrected_joules is null and holder.energy_joules > 0) as uncounted_count,
        sum(holder.sm_active_gpu_seconds) as sm_active_gpu_seconds,
        sum(holder.known_gpu_seconds) / 3600 as measured_gpu_hours
    from holder
    left join period.workload as owner
        using (cluster, namespace, pod, pod_uid)
    group by all
    union all by name
    select * replace ('workload' as dimension)
    from summed
    where dimension = 'namespace' and value = '(unallocated or unknown)'
    union all by name
    from summed
),

judged as (
    select
        *,
        -- Dimensions of whole GPUs have measured energy, without an error from shares.
        if(dimension in ('team', 'namespace', 'workload'), share_error_joules, 0) as range_joules,
        case
            when unrated_count > 0 then 'accuracy_unknown'
            when range_joules is null then 'older_facts'
            when energy_joules = 0 then 'no_time'
        end as range_reason,
        case
            when power_watts_avg is not null then null
            when dimension = 'workload' then 'added_by_day'
            else 'no_time'
        end as watts_reason,
        energy_joules - coalesce(active_joules + allocated_idle_joules + idle_joules, 0) - unattributed_joules as rest_joules,
        if(rest_joules > 1e-9 * energy_joules, round(rest_joules, 6), 0) as unsplit_joules,
        if(unsplit_joules > 0 and coalesce(active_joules + allocated_idle_joules + idle_joules, 0) = 0, 'idle_unknown', null) as split_reason,
        case
            when sm_active_gpu_seconds is null then coalesce(split_reason, 'not_collected')
            when sm_active_gpu_seconds = 0 then 'not_active'
        end as sm_reason
    from each_dimension
)

select
    columns('^(cluster|dimension|value|energy_joules)$'),
    energy_joules / 3.6e6 as energy_kwh,
    energy_method,
    if(uncounted_count = 0, corrected_joules, null) as corrected_joules,
    if(range_reason is null, least(1, (rated_joules + range_joules) / energy_joules), null) as energy_accuracy_ratio,
    if(split_reason is null, columns(['active_joules', 'allocated_idle_joules', 'idle_joules']), null),
    columns('^(unattributed_joules|unsplit_joules|never_active_joules|power_watts_avg|hour_power_watts_max)$'),
    if(sm_reason is null, sm_active_joules / sm_active_gpu_seconds, null) as sm_active_watts,
    measured_gpu_hours,
    unknown_reasons([(name, split_reason) for name in ['active_joules', 'allocated_idle_joules']] || [
        ('idle_joules', if(idle_joules is null, 'idle_unknown', split_reason)),
        ('corrected_joules', if(uncounted_count > 0, 'older_facts', null)),
        ('energy_accuracy_ratio', range_reason),
        ('power_watts_avg', watts_reason),
        ('hour_power_watts_max', watts_reason),
        ('sm_active_watts', sm_reason)
    ]) as unknown_reasons
from judged
where energy_joules > 0 or measured_gpu_hours > 0
