-- Sums of each container on each of its devices per UTC day: facts.container_hour added over hours.
--
-- A row for each set of labels that the device had on the day.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, day, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  facts.container_hour
-- params: since_at, until_at
-- source: facts.container_hour
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, day, node_name, gpu_index, gpu_device, gpu_model,
--          gpu_instance_profile, pci_bus_id, driver_version, make, observed_seconds, fb_used_seen_seconds, fb_used_byte_seconds,
--          memory_seen_seconds, memory_used_ratio_seconds, memory_pressure_seconds, gr_engine_active_seen_seconds,
--          gr_engine_active_ratio_seconds, sm_active_seen_seconds, sm_active_ratio_seconds, sm_occupancy_seen_seconds,
--          sm_occupancy_ratio_seconds, tensor_active_seen_seconds, tensor_active_ratio_seconds, fp64_active_seen_seconds,
--          fp64_active_ratio_seconds, fp32_active_seen_seconds, fp32_active_ratio_seconds, fp16_active_seen_seconds,
--          fp16_active_ratio_seconds, dram_active_seen_seconds, dram_active_ratio_seconds, power_seen_seconds, power_joules,
--          energy_seen_seconds, energy_joules, energy_gap_joules, gpu_util_seen_seconds, gpu_util_ratio_seconds, mem_copy_util_seen_seconds,
--          mem_copy_util_ratio_seconds, gpu_temp_seen_seconds, gpu_temp_celsius_seconds, memory_temp_seen_seconds,
--          memory_temp_celsius_seconds, sm_clock_seen_seconds, sm_clock_hertz_seconds, memory_clock_seen_seconds, memory_clock_hertz_seconds,
--          pcie_tx_seen_seconds, pcie_tx_bytes, pcie_rx_seen_seconds, pcie_rx_bytes, nvlink_tx_seen_seconds, nvlink_tx_bytes,
--          nvlink_rx_seen_seconds, nvlink_rx_bytes, throttle_seen_seconds, sw_power_cap_seen_seconds, sw_power_cap_seconds,
--          hw_slowdown_seconds, sync_boost_seen_seconds, sync_boost_seconds, sw_thermal_seen_seconds, sw_thermal_seconds,
--          hw_thermal_seen_seconds, hw_thermal_seconds, hw_power_brake_seen_seconds, hw_power_brake_seconds, any_throttle_seconds,
--          power_violation_seen_seconds, power_violation_seconds, power_violation_gap_seconds, thermal_violation_seen_seconds,
--          thermal_violation_seconds, thermal_violation_gap_seconds, sync_boost_violation_seen_seconds, sync_boost_violation_seconds,
--          sync_boost_violation_gap_seconds, board_limit_violation_seen_seconds, board_limit_violation_seconds,
--          board_limit_violation_gap_seconds, pcie_replay_seen_seconds, pcie_replay_count, pcie_replay_gap_count, xid_seen_seconds,
--          sample_count, energy_sample_count, power_violation_sample_count, thermal_violation_sample_count,
--          sync_boost_violation_sample_count, board_limit_violation_sample_count, pcie_replay_sample_count, xid_event_count,
--          fb_used_bytes_max, fb_total_bytes_max, memory_used_ratio_max, sm_active_ratio_max, dram_active_ratio_max, power_watts_max,
--          power_limit_watts_max, gpu_temp_celsius_max, memory_temp_celsius_max, sm_clock_hertz_max, memory_clock_hertz_max, xid_codes,
--          sharing_mode, sharing_evidence, busiest_sm_active_ratio, busiest_sm_occupancy_ratio, busiest_dram_active_ratio, first_hour_at,
--          power_at, heat_at, hardware_at, memory_at
--   power_at                    UTC, first hour with throttling by power; null without
--   heat_at                     UTC, first hour with throttling by heat; null without
--   hardware_at                 UTC, first hour with hardware slowdown; null without
--   memory_at                   UTC, first hour with memory pressure; null without
with hour as (
    select *
    from facts.container_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
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
    -- Minutes at the edge of an hour are no busy hour.
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
