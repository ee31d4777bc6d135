-- Energy of the GPUs by hour, namespace, node and model: of holders, and unallocated.
--
-- The rows add up to the measured energy. A row with the namespace '' is unallocated: energy of free GPUs and unattributed energy. Amounts and
-- seconds are of GPUs with known energy, except gpu_seconds and used_gpu_seconds. The parts are unknown where the idle baseline is unknown.
--
-- revision: 13
-- grain:  cluster, hour_start_at, namespace, is_allocated, node_name, gpu_model
-- reads:  facts.container_hour, facts.device_hour, facts.device_power_hour, facts.power_hour
-- params: since_at, until_at
-- columns: cluster, hour_start_at, namespace, is_allocated, node_name, gpu_model, energy_method, active_joules, allocated_idle_joules, idle_joules,
--          unattributed_joules, gap_joules, never_active_joules, share_error_joules, energy_joules, corrected_joules, sm_active_joules, measured_seconds, measured_gpu_seconds,
--          device_measured_seconds_max, power_watts, sm_active_gpu_seconds, gpu_seconds, used_gpu_seconds, unmeasured_gpu_seconds
--   namespace                    workload namespace; '' for unallocated energy
--   energy_joules                J in all, also where its parts are unknown; null where no energy is known
--   never_active_joules          J of containers without activity on the device all day
--   measured_seconds             s with known energy, of each holder and the unallocated part
--   gpu_seconds                  s x part of the GPU, measured or not; 0 for unallocated energy
--   used_gpu_seconds             gpu_seconds x engine activity, else GPU utilization; null where both are unknown for a part of the time
with place as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        max(columns('^(node_name|gpu_model)$'))
    from facts.device_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by cluster, device_uuid, hour_start_at
),

-- The exporter may have series of a GPU's instances alone: then nothing of the board's energy is known.
board as (
    select
        place.*,
        device.* exclude (cluster, device_uuid, hour_start_at),
        device.corrected_joules / nullif(device.measured_joules, 0) as corrected_ratio,
        case
            when device.measured_seconds is null then 'counter'
            when device.counter_seconds is null then 'unknown'
            when device.counter_seconds > device.measured_seconds - 1e-6 then 'counter'
            when device.counter_seconds > 0 then 'mixed'
            else 'integral'
        end as energy_method
    from place
    left join facts.device_power_hour as device
        using (cluster, device_uuid, hour_start_at)
),

holder as (
    select
        power.*,
        sum(power.active_seconds) over (
            partition by
                power.cluster, power.namespace, power.pod, power.pod_uid, power.container, power.device_uuid, power.gpu_instance_id,
                power.hour_start_at::date
        ) = 0 as is_never_active,
        board.* similar to '^(node_name|gpu_model|energy_method|corrected_ratio)$',
        board.measured_seconds as device_measured_seconds,
        -- A holder without a sample in the hour is the only holder, across a gap.
        power.measured_seconds * coalesce(power.gpu_seconds / nullif(power.observed_seconds, 0), 1) as measured_gpu_seconds,
        coalesce(
            activity.gr_engine_active_ratio_seconds / activity.gr_engine_active_seen_seconds,
            -- A board's utilization is not known by instance.
            if(power.gpu_instance_id = '', activity.gpu_util_ratio_seconds / activity.gpu_util_seen_seconds, null)
        ) as used_ratio,
        activity.sm_active_ratio_seconds / activity.sm_active_seen_seconds as sm_active_ratio
    from facts.power_hour as power
    inner join board
        using (cluster, device_uuid, hour_start_at)
    left join facts.container_hour as activity
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at)
),

allocated as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        sum(idle_joules) as idle_joules,
        sum(measured_gpu_seconds) as held_gpu_seconds
    from holder
    group by cluster, device_uuid, hour_start_at
),

part as (
    select
        columns('^(cluster|hour_start_at|namespace)$'),
        true as is_allocated,
        columns('^(node_name|gpu_model|energy_method)$'),
        if(idle_joules is null, null, columns('^(active|allocated_idle|idle)_joules$')),
        active_joules + allocated_idle_joules + coalesce(idle_joules, 0) as energy_joules,
        if(active_joules is null, null, 0) as unattributed_joules,
        if(is_never_active, allocated_idle_joules + coalesce(idle_joules, 0), active_joules * 0) as never_active_joules,
        active_joules * share_error_ratio(method, equal_seconds, active_seconds) as share_error_joules,
        columns('^(corrected_ratio|(device_)?measured_seconds|(measured_)?gpu_seconds)$'),
        gpu_seconds * used_ratio as used_gpu_seconds,
        if(idle_joules is null, null, measured_gpu_seconds * sm_active_ratio) as sm_active_gpu_seconds
    from holder
    union all by name
    select
        board.* similar to '^(cluster|hour_start_at|node_name|gpu_model|energy_method|unattributed_joules|gap_joules|corrected_ratio)$',
        '' as namespace,
        false as is_allocated,
        0 as active_joules,
        0 as allocated_idle_joules,
        -- A rounding error of a difference is not energy.
        if(
            board.idle_joules is null and board.measured_seconds > 0, null,
            greatest(0, round(board.idle_joules - coalesce(allocated.idle_joules, 0), 6))
        ) as idle_joules,
        0 as never_active_joules,
        0 as share_error_joules,
        greatest(0, round(board.measured_seconds - coalesce(allocated.held_gpu_seconds, 0), 6)) as measured_gpu_seconds,
        greatest(board.measured_seconds - board.held_seconds, measured_gpu_seconds) as measured_seconds,
        board.measured_seconds as device_measured_seconds,
        0 as gpu_seconds,
        0 as used_gpu_seconds,
        0 as sm_active_gpu_seconds
    from board
    left join allocated
        using (cluster, device_uuid, hour_start_at)
    where board.measured_joules is not null
),

whole as (
    select
        * exclude (corrected_ratio),
        energy_joules * corrected_ratio as corrected_joules,
        if(sm_active_gpu_seconds is null, null, active_joules) as sm_active_joules
    from (
        select * replace (coalesce(energy_joules, active_joules + allocated_idle_joules + coalesce(idle_joules, 0) + unattributed_joules) as energy_joules)
        from part
    ) as energy
    order by all
)

select
    columns('^(cluster|hour_start_at|namespace|is_allocated|node_name|gpu_model)$'),
    case count(distinct energy_method) filter (where energy_joules is not null)
        when 0 then null
        when 1 then min(energy_method) filter (where energy_joules is not null)
        else 'mixed'
    end as energy_method,
    sum(columns('_joules$')),
    sum(columns('^measured_(gpu_)?seconds$')) filter (where energy_joules is not null),
    max(device_measured_seconds) filter (where energy_joules is not null) as device_measured_seconds_max,
    sum((energy_joules - coalesce(gap_joules, 0)) / nullif(device_measured_seconds, 0)) as power_watts,
    sum(sm_active_gpu_seconds) filter (where energy_joules is not null) as sm_active_gpu_seconds,
    sum(gpu_seconds) as gpu_seconds,
    if(count(used_gpu_seconds) = count(*), sum(used_gpu_seconds), null) as used_gpu_seconds,
    coalesce(sum(gpu_seconds) filter (where energy_joules is null), 0) as unmeasured_gpu_seconds
from whole
group by all
