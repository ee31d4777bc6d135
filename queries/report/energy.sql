-- Where the energy of the GPUs went: by day, namespace, node and model; '' as the namespace is nobody's part.
--
-- The rows add up to what was measured: active, held and idle energy of holders; for nobody what stood free drew, and what is unattributed.
--
-- grain:  cluster, day, namespace, node_name, gpu_model
-- reads:  facts.device_hour, facts.device_power_hour, facts.power_hour
-- params: since_at, until_at
-- source: facts.power_hour, facts.device_power_hour
-- columns:
--   cluster             cluster name
--   day                 UTC day
--   namespace           workload namespace; '' for what nobody used
--   node_name           node; '' where unknown
--   gpu_model           model; '' where unknown
--   energy_joules       J in all: active, held, idle and unattributed
--   energy_kwh          the same in kWh
--   active_joules       J above idle in active time
--   held_joules         J above idle while held and not active
--   idle_joules         J of the idle baseline: of holders while they held, of nobody while it stood free; unknown counts as 0
--   unattributed_joules  J above idle that nobody can be told to have used
--   never_active_joules  J held and idle of holders on days on which they never were active on the GPU
--   power_watts_avg     W, energy_joules over the time that was measured
--   measured_seconds    s whose energy is known, of each holder on its own; of nobody's the time that nobody held
--   unknown_reasons     figure name → why it is null (docs: queries/README.md); one entry for each null figure
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

holder as (
    select
        power.*,
        place.node_name,
        place.gpu_model,
        power.hour_start_at::date as day,
        sum(power.active_seconds) over (
            partition by
                power.cluster, power.namespace, power.pod, power.pod_uid, power.container, power.device_uuid,
                power.gpu_instance_id, power.hour_start_at::date
        ) = 0 as is_never_active
    from facts.power_hour as power
    inner join place
        on
            power.cluster = place.cluster
            and power.device_uuid = place.device_uuid
            and power.hour_start_at = place.hour_start_at
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
        day,
        namespace,
        node_name,
        gpu_model,
        active_joules,
        held_joules,
        idle_joules,
        0 as unattributed_joules,
        if(is_never_active, coalesce(held_joules, 0) + coalesce(idle_joules, 0), 0) as never_active_joules,
        measured_seconds
    from holder
    where measured_seconds is not null
    union all by name
    select
        device.cluster,
        device.hour_start_at::date as day,
        '' as namespace,
        place.node_name,
        place.gpu_model,
        0 as active_joules,
        0 as held_joules,
        device.idle_joules - coalesce(held.idle_joules, 0) as idle_joules,
        device.unattributed_joules,
        0 as never_active_joules,
        device.measured_seconds - device.held_seconds as measured_seconds
    from facts.device_power_hour as device
    inner join place
        on
            device.cluster = place.cluster
            and device.device_uuid = place.device_uuid
            and device.hour_start_at = place.hour_start_at
    left join held
        on
            device.cluster = held.cluster
            and device.device_uuid = held.device_uuid
            and device.hour_start_at = held.hour_start_at
    where device.measured_joules is not null
),

summed as (
    select
        cluster,
        day,
        namespace,
        node_name,
        gpu_model,
        sum(active_joules) as active_joules,
        sum(held_joules) as held_joules,
        -- What is left of a difference of sums is no energy.
        greatest(0, round(coalesce(sum(idle_joules), 0), 6)) as idle_joules,
        sum(unattributed_joules) as unattributed_joules,
        sum(never_active_joules) as never_active_joules,
        coalesce(sum(measured_seconds), 0) as measured_seconds
    from part
    group by cluster, day, namespace, node_name, gpu_model
)

select
    cluster,
    day,
    namespace,
    node_name,
    gpu_model,
    active_joules + held_joules + idle_joules + unattributed_joules as energy_joules,
    energy_joules / 3.6e6 as energy_kwh,
    active_joules,
    held_joules,
    idle_joules,
    unattributed_joules,
    never_active_joules,
    energy_joules / nullif(measured_seconds, 0) as power_watts_avg,
    measured_seconds,
    map_from_entries([entry for entry in [
        { 'figure': 'power_watts_avg', 'reason': if(measured_seconds = 0, 'no_time', null) }
    ] if entry.reason is not null]) as unknown_reasons
from summed
where measured_seconds > 0 or energy_joules > 0
order by all
