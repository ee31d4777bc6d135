-- Energy balance of the GPUs by cluster, day, node, model, team, namespace, workload, pod and container.
--
-- Each dimension is the whole: its rows add up to what was measured, so never add rows of different dimensions. '(nobody)' is what
-- free GPUs drew and what is unattributed; '(no team)' are namespaces without the label that names teams, '(unknown)' pods whose
-- workload is not known.
--
-- grain:  cluster, dimension, value
-- reads:  period.energy_hour, period.workload
-- params:
-- source: period.energy_hour; label of the namespace that owners.team_label names
-- columns: cluster, dimension, value, energy_joules, energy_kwh, energy_method, energy_accuracy_ratio, active_joules, held_joules, idle_joules,
--          unattributed_joules, never_active_joules, power_watts_avg, hour_power_watts_max, sm_active_watts, measured_gpu_hours, unknown_reasons
--   dimension             cluster, day, node_name, gpu_model, team, namespace, workload, pod or container: what the row is for
--   value                 which of them; workloads as namespace/kind/name, pods as namespace/pod, containers as namespace/pod/container
--   energy_joules         J in all: active, held, idle and unattributed
--   idle_joules           J of the idle baseline; unknown counts as 0
--   power_watts_avg       W, mean over its hours: in each, a GPU's energy over the time it was measured, added over GPUs
--   hour_power_watts_max  W, the largest of its hours
--   sm_active_watts       W above idle per unit of SM activity of a whole GPU, where that is known
--   measured_gpu_hours    GPU-hours whose energy is known, x its part of the GPU; of the unallocated part the time without a holder
with named as (
    select
        energy.*,
        energy.hour_start_at::date as day,
        if(energy.is_held, coalesce(nullif(owner.team, ''), '(no team)'), '(nobody)') as team,
        coalesce(owner.workload_kind, '') as workload_kind,
        coalesce(owner.workload, '') as workload
    from period.energy_hour as energy
    left join period.workload as owner
        using (cluster, namespace, pod, pod_uid)
    where energy.energy_joules is not null
),

grouped as (
    select
        cluster,
        hour_start_at,
        day,
        node_name,
        gpu_model,
        team,
        namespace,
        workload_kind,
        workload,
        pod,
        container,
        bool_or(is_held) as is_held,
        min(energy_method) as least_method,
        max(energy_method) as largest_method,
        sum(if(accuracy_ratio is null and energy_joules > 0, 1, 0)) as unrated_count,
        sum(energy_joules * accuracy_ratio) as rated_joules,
        sum(columns('_joules$|^sm_')),
        sum(if(is_held, gpu_seconds, measured_seconds)) as measured_gpu_seconds,
        max(device_measured_seconds) as measured_seconds,
        sum(energy_joules / nullif(device_measured_seconds, 0)) as power_watts,
        sum(if(sm_active_gpu_seconds is null, null, active_joules)) as sm_joules
    from named
    group by grouping sets (
        (cluster, hour_start_at),
        (cluster, hour_start_at, day),
        (cluster, hour_start_at, node_name),
        (cluster, hour_start_at, gpu_model),
        (cluster, hour_start_at, team),
        (cluster, hour_start_at, namespace),
        (cluster, hour_start_at, namespace, workload_kind, workload),
        (cluster, hour_start_at, namespace, pod),
        (cluster, hour_start_at, namespace, pod, container)
    )
),

hour as (
    select
        *,
        case
            when container is not null then 'container'
            when pod is not null then 'pod'
            when workload is not null then 'workload'
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
            when not is_held then '(nobody)'
            when workload = '' then namespace || '/(unknown)'
            else concat_ws('/', namespace, workload_kind, workload, pod, container)
        end as value
    from grouped
),

summed as (
    select
        cluster,
        dimension,
        value,
        if(min(least_method) = max(largest_method), min(least_method), 'mixed') as energy_method,
        sum(columns('_joules$|^sm_|^unrated_')),
        sum(measured_gpu_seconds) / 3600 as measured_gpu_hours,
        sum(power_watts * measured_seconds) / nullif(sum(measured_seconds), 0) as power_watts_avg,
        max(power_watts) as hour_power_watts_max
    from hour
    group by cluster, dimension, value
),

judged as (
    select
        *,
        if(power_watts_avg is null, 'no_time', null) as watts_reason,
        case
            when sm_active_gpu_seconds is null then 'not_collected'
            when sm_active_gpu_seconds = 0 then 'not_active'
        end as sm_reason
    from summed
)

select
    cluster,
    dimension,
    value,
    energy_joules,
    energy_joules / 3.6e6 as energy_kwh,
    energy_method,
    if(unrated_count = 0, rated_joules / nullif(energy_joules, 0), null) as energy_accuracy_ratio,
    active_joules,
    held_joules,
    idle_joules,
    unattributed_joules,
    never_active_joules,
    power_watts_avg,
    hour_power_watts_max,
    if(sm_reason is null, sm_joules / sm_active_gpu_seconds, null) as sm_active_watts,
    measured_gpu_hours,
    unknown_reasons([
        ('energy_accuracy_ratio', case when unrated_count > 0 then 'accuracy_unknown' when energy_accuracy_ratio is null then 'no_time' end),
        ('power_watts_avg', watts_reason),
        ('hour_power_watts_max', watts_reason),
        ('sm_active_watts', sm_reason)
    ]) as unknown_reasons
from judged
where energy_joules > 0 or measured_gpu_hours > 0
