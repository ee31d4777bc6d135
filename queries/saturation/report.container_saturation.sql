-- Use and saturation of each container on each of its devices.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  period.figure
-- parts:  200000 rows of period.figure by cluster, namespace, pod
-- source: period.figure; definitions: DCGM field reference, NVML clock event reasons
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, observed_seconds, coverage_ratio, gpu_usage_avg, gpu_util_ratio_avg,
--          power_violation_ratio, thermal_violation_ratio, sync_boost_violation_ratio, board_limit_violation_ratio, low_util_violation_ratio,
--          reliability_violation_ratio, sw_power_cap_ratio, hw_slowdown_ratio, sync_boost_ratio, sw_thermal_ratio, hw_thermal_ratio, hw_power_brake_ratio,
--          any_throttle_ratio, memory_used_ratio_avg, memory_used_ratio_max, memory_pressure_ratio, xid_error_count, xid_codes, dram_active_avg,
--          dram_active_max, sm_active_avg, sm_active_max, sm_occupancy_avg, tensor_active_avg, pcie_tx_bytes_per_second_avg, pcie_rx_bytes_per_second_avg,
--          nvlink_tx_bytes_per_second_avg, nvlink_rx_bytes_per_second_avg, pcie_tx_ratio_avg, pcie_rx_ratio_avg, nvlink_tx_ratio_avg, nvlink_rx_ratio_avg,
--          gpu_device, gpu_model, node_name, sharing_mode, sharing_evidence, scope, throttle_scope, memory_scope, any_throttle_ratio_min,
--          gpu_usage_seen_seconds, gpu_util_seen_seconds, power_violation_seconds, power_violation_seen_seconds, thermal_violation_seconds,
--          thermal_violation_seen_seconds, sync_boost_violation_seconds, sync_boost_violation_seen_seconds, board_limit_violation_seconds,
--          low_util_violation_seconds, reliability_violation_seconds, board_limit_violation_seen_seconds, low_util_violation_seen_seconds,
--          reliability_violation_seen_seconds, sw_power_cap_seconds, hw_slowdown_seconds, sync_boost_seconds, sw_thermal_seconds, hw_thermal_seconds,
--          hw_power_brake_seconds, any_throttle_seconds, throttle_seen_seconds, memory_pressure_seconds, memory_seen_seconds, dram_active_seen_seconds,
--          sm_active_seen_seconds, sm_occupancy_seen_seconds, tensor_active_seen_seconds, pcie_tx_seen_seconds, pcie_rx_seen_seconds, nvlink_tx_seen_seconds,
--          nvlink_rx_seen_seconds, unknown_reasons
--   observed_seconds                    s in which the device had data while allocated
--   coverage_ratio                      time with data over the holder's lifetime on the device; null where the lifetime is unknown
select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
    observed_seconds,
    observed_seconds / nullif(lifetime_seconds, 0) as coverage_ratio,
    * similar to '.*_(ratio|avg|max|count|codes)$',
    columns('^(gpu_device|gpu_model|node_name|sharing_mode|sharing_evidence)$'),
    'device' as scope,
    if(gpu_instance_id = '', 'device', 'board') as throttle_scope,
    if(gpu_instance_id = '', 'device', 'instance') as memory_scope,
    any_throttle_ratio_min,
    * similar to '^([^dlo]|dram|low_).*_seconds$',
    if(
        coalesce(lifetime_seconds, 0) > 0,
        unknown_reasons,
        map_concat(unknown_reasons, map { 'coverage_ratio': 'lifetime_unknown' })
    ) as unknown_reasons
from period.figure
where subject = 'container_device'
