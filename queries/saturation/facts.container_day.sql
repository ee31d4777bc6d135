-- Sums of each container on each of its devices per UTC day: facts.container_hour added over hours.
--
-- Each set of labels of the device on the day has its own row.
--
-- revision: 2
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, day, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  facts.container_hour
-- params: since_at, until_at
-- columns: those of facts.container_hour without hour_start_at, certainty, scope, memory_threshold_ratio; day, busiest_sm_active_ratio,
--          busiest_sm_occupancy_ratio, busiest_dram_active_ratio, first_hour_at, power_at, heat_at, hardware_at, memory_at
with hour as (
    select *
    from facts.container_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    order by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
    hour_start_at::date as day,
    columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$'),
    sum(columns('_(seconds|joules|bytes)$|^pcie_replay(_gap)?_count$')),
    sum(columns('sample_count$|^xid_event_count$'))::bigint,
    max(columns('_max$')),
    list_sort(list_distinct(flatten(list(xid_codes) filter (where xid_codes is not null)))) as xid_codes,
    max(sharing_mode) as sharing_mode,
    arg_max(sharing_evidence, sharing_mode) as sharing_evidence,
    -- A few minutes at the edge of an hour do not make a busy hour.
    max(sm_active_ratio_seconds / sm_active_seen_seconds) filter (where sm_active_seen_seconds >= 600) as busiest_sm_active_ratio,
    max(sm_occupancy_ratio_seconds / sm_occupancy_seen_seconds) filter (where sm_occupancy_seen_seconds >= 600) as busiest_sm_occupancy_ratio,
    max(dram_active_ratio_seconds / dram_active_seen_seconds) filter (where dram_active_seen_seconds >= 600) as busiest_dram_active_ratio,
    min(hour_start_at) as first_hour_at,
    min(hour_start_at) filter (where sw_power_cap_seconds > 0 or power_violation_seconds > 0) as power_at,
    min(hour_start_at) filter (
        where sw_thermal_seconds > 0 or hw_thermal_seconds > 0 or thermal_violation_seconds > 0
    ) as heat_at,
    min(hour_start_at) filter (where hw_slowdown_seconds > 0 or hw_power_brake_seconds > 0) as hardware_at,
    min(hour_start_at) filter (where memory_pressure_seconds > 0) as memory_at
from hour
group by all
