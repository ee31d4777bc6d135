-- Energy of the GPUs per hour of the window: each holder's on each of its GPUs, and each GPU's unattributed energy.
--
-- The rows of a GPU add up to what it measured. The unallocated row has the names '': what was free drew, and what is unattributed.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  facts.container_hour, facts.device_hour, facts.device_power_hour, facts.power_day, facts.power_hour
-- params: gpu_models, since_at, until_at
-- source: facts.power_hour, facts.device_power_hour; queries/catalog/gpu_model.csv
-- columns:
--   namespace                workload namespace; '' of the unallocated part
--   is_held                  false of the unallocated part
--   energy_joules            J in all: active, held, idle and unattributed; null where it is unknown
--   accuracy_ratio           0..1, by how much of its reading the model's power sensor may be off; null where it is not published
--   idle_joules              J of the idle baseline; unknown counts as 0, for then all is above it
--   measured_seconds         s whose energy is known; of the unallocated part the time without a holder
--   device_measured_seconds  s of the hour in which the GPU's energy is known
--   gpu_seconds              s x its part of the GPU; 0 of the unallocated part
--   used_gpu_seconds         gpu_seconds x engine activity, else GPU utilization; null where neither is known
--   sm_active_gpu_seconds    gpu_seconds x SM activity; null where that is unknown
with place as (
    select
        cluster,
        device_uuid,
        hour_start_at,
        max(node_name) as node_name,
        max(gpu_model) as gpu_model
    from facts.device_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    group by cluster, device_uuid, hour_start_at
),

model as (
    select distinct gpu_model
    from place
),

listed as (
    select unnest(from_json($gpu_models::json, '[{"gpu_model": "VARCHAR", "power_accuracy_ratio": "VARCHAR"}]'), recursive := true)
),

accuracy as (
    select
        model.gpu_model,
        max(nullif(listed.power_accuracy_ratio, '')::double) as accuracy_ratio
    from model
    inner join listed on model.gpu_model glob listed.gpu_model
    group by model.gpu_model
),

board as (
    select
        device.*,
        accuracy.accuracy_ratio,
        case
            when device.counter_seconds is null then 'unknown'
            when device.counter_seconds > device.measured_seconds - 1e-6 then 'counter'
            when device.counter_seconds > 0 then 'mixed'
            else 'integral'
        end as energy_method,
        place.node_name,
        place.gpu_model
    from facts.device_power_hour as device
    inner join place
        using (cluster, device_uuid, hour_start_at)
    left join accuracy
        using (gpu_model)
),

-- Days on which a container never was active on its device.
inactive as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        device_uuid,
        gpu_instance_id,
        day
    from facts.power_day
    group by all
    having sum(active_seconds) = 0
),

holder as (
    select
        power.*,
        board.node_name,
        board.gpu_model,
        board.energy_method,
        board.accuracy_ratio,
        board.measured_seconds as device_measured_seconds,
        coalesce(
            activity.gr_engine_active_ratio_seconds / activity.gr_engine_active_seen_seconds,
            activity.gpu_util_ratio_seconds / activity.gpu_util_seen_seconds
        ) as used_ratio,
        activity.sm_active_ratio_seconds / activity.sm_active_seen_seconds as sm_active_ratio,
        inactive.day is not null as is_never_active
    from facts.power_hour as power
    inner join board
        using (cluster, device_uuid, hour_start_at)
    left join facts.container_hour as activity
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at)
    left join inactive
        on
            power.cluster = inactive.cluster
            and power.namespace = inactive.namespace
            and power.pod = inactive.pod
            and power.pod_uid = inactive.pod_uid
            and power.container = inactive.container
            and power.device_uuid = inactive.device_uuid
            and power.gpu_instance_id = inactive.gpu_instance_id
            and power.hour_start_at::date = inactive.day
),

held as (
    select
        cluster,
        device_uuid,
        hour_start_at,
        sum(idle_joules) as idle_joules
    from facts.power_hour
    group by cluster, device_uuid, hour_start_at
),

part as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        device_uuid,
        gpu_instance_id,
        hour_start_at,
        true as is_held,
        node_name,
        gpu_model,
        energy_method,
        accuracy_ratio,
        active_joules,
        held_joules,
        if(active_joules is null, null, coalesce(idle_joules, 0)) as idle_joules,
        if(active_joules is null, null, 0) as unattributed_joules,
        if(is_never_active, held_joules + coalesce(idle_joules, 0), active_joules * 0) as never_active_joules,
        measured_seconds,
        device_measured_seconds,
        gpu_seconds,
        gpu_seconds * used_ratio as used_gpu_seconds,
        gpu_seconds * sm_active_ratio as sm_active_gpu_seconds
    from holder
    union all by name
    select
        board.cluster,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as container,
        board.device_uuid,
        '' as gpu_instance_id,
        board.hour_start_at,
        false as is_held,
        board.node_name,
        board.gpu_model,
        board.energy_method,
        board.accuracy_ratio,
        0 as active_joules,
        0 as held_joules,
        -- What is left of a difference of sums is no energy.
        greatest(0, round(coalesce(board.idle_joules, 0) - coalesce(held.idle_joules, 0), 6)) as idle_joules,
        board.unattributed_joules,
        0 as never_active_joules,
        board.measured_seconds - board.held_seconds as measured_seconds,
        board.measured_seconds as device_measured_seconds,
        0 as gpu_seconds,
        0 as used_gpu_seconds,
        0 as sm_active_gpu_seconds
    from board
    left join held
        using (cluster, device_uuid, hour_start_at)
    where board.measured_joules is not null
)

select
    *,
    active_joules + held_joules + idle_joules + unattributed_joules as energy_joules
from part
