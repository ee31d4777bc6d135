-- Saturation, memory and energy of each container over all of its devices.
--
-- Roll-up: time-weighted mean for activity and memory averages; maximum for _max, throttling, violation and pressure
-- (over the devices where it is known); sum for XID errors and bytes per second, and time-weighted mean for their share of
-- the link (null where any device's is unknown); union for XID codes.
--
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  period.figure
-- params:
-- source: period.figure
-- columns: cluster, namespace, pod, pod_uid, container, observed_seconds, coverage_ratio, gpu_usage_avg, gpu_util_ratio_avg,
--          power_violation_ratio, thermal_violation_ratio, sync_boost_violation_ratio, board_limit_violation_ratio, sw_power_cap_ratio,
--          hw_slowdown_ratio, sync_boost_ratio, sw_thermal_ratio, hw_thermal_ratio, hw_power_brake_ratio, any_throttle_ratio,
--          memory_used_ratio_avg, memory_used_ratio_max, memory_pressure_ratio, xid_error_count, xid_codes, dram_active_avg, dram_active_max,
--          sm_active_avg, sm_active_max, sm_occupancy_avg, tensor_active_avg, pcie_tx_bytes_per_second_avg, pcie_rx_bytes_per_second_avg,
--          nvlink_tx_bytes_per_second_avg, nvlink_rx_bytes_per_second_avg, pcie_tx_ratio_avg, pcie_rx_ratio_avg, nvlink_tx_ratio_avg,
--          nvlink_rx_ratio_avg, gpu_device, gpu_model, node_name, sharing_mode, sharing_evidence, scope, throttle_scope, memory_scope,
--          any_throttle_ratio_min, gpu_usage_seen_seconds, gpu_util_seen_seconds, power_violation_seconds, power_violation_seen_seconds,
--          thermal_violation_seconds, thermal_violation_seen_seconds, sync_boost_violation_seconds, sync_boost_violation_seen_seconds,
--          board_limit_violation_seconds, board_limit_violation_seen_seconds, sw_power_cap_seconds, hw_slowdown_seconds, sync_boost_seconds,
--          sw_thermal_seconds, hw_thermal_seconds, hw_power_brake_seconds, any_throttle_seconds, throttle_seen_seconds,
--          memory_pressure_seconds, memory_seen_seconds, dram_active_seen_seconds, sm_active_seen_seconds, sm_occupancy_seen_seconds,
--          tensor_active_seen_seconds, pcie_tx_seen_seconds, pcie_rx_seen_seconds, nvlink_tx_seen_seconds, nvlink_rx_seen_seconds,
--          device_seconds, device_count, source_metrics, unknown_reasons
--   observed_seconds                    s in which any of its devices was seen while held
--   coverage_ratio                      seen time over the holder's lifetime on the device; null where the lifetime is unknown
--   gpu_device                          device name on the node; several are listed
--   gpu_model                           model; several are listed
--   node_name                           node; several are listed
--   scope                               device: the figures are the device's, not a container's share of it
--   device_seconds                      s in which its devices were seen, added over devices
--   device_count                        devices and MIG instances that it held
with part as (
    select
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        count(*) as device_count,
        max(columns('_(ratio|max|ratio_min)$')),
        if(count(xid_error_count) = count(*), sum(xid_error_count), null) as xid_error_count,
        if(count(xid_codes) = count(*), list_sort(list_distinct(flatten(list(xid_codes)))), null) as xid_codes,
        if(count(columns('_per_second_avg$')) = count(*), sum(columns('_per_second_avg$')), null) as "\0",
        if(
            count(pcie_tx_ratio_avg) = count(*),
            sum(pcie_tx_ratio_avg * pcie_tx_seen_seconds) / sum(pcie_tx_seen_seconds),
            null
        ) as pcie_tx_ratio_avg,
        if(
            count(pcie_rx_ratio_avg) = count(*),
            sum(pcie_rx_ratio_avg * pcie_rx_seen_seconds) / sum(pcie_rx_seen_seconds),
            null
        ) as pcie_rx_ratio_avg,
        if(
            count(nvlink_tx_ratio_avg) = count(*),
            sum(nvlink_tx_ratio_avg * nvlink_tx_seen_seconds) / sum(nvlink_tx_seen_seconds),
            null
        ) as nvlink_tx_ratio_avg,
        if(
            count(nvlink_rx_ratio_avg) = count(*),
            sum(nvlink_rx_ratio_avg * nvlink_rx_seen_seconds) / sum(nvlink_rx_seen_seconds),
            null
        ) as nvlink_rx_ratio_avg,
        -- Why it is null on a device: of several reasons the first by letter; a sum that lacks a device has a reason of its own.
        min(unknown_reasons['power_violation_ratio']) as power_violation_ratio_reason,
        min(unknown_reasons['thermal_violation_ratio']) as thermal_violation_ratio_reason,
        min(unknown_reasons['sync_boost_violation_ratio']) as sync_boost_violation_ratio_reason,
        min(unknown_reasons['board_limit_violation_ratio']) as board_limit_violation_ratio_reason,
        min(unknown_reasons['sw_power_cap_ratio']) as sw_power_cap_ratio_reason,
        min(unknown_reasons['hw_slowdown_ratio']) as hw_slowdown_ratio_reason,
        min(unknown_reasons['sync_boost_ratio']) as sync_boost_ratio_reason,
        min(unknown_reasons['sw_thermal_ratio']) as sw_thermal_ratio_reason,
        min(unknown_reasons['hw_thermal_ratio']) as hw_thermal_ratio_reason,
        min(unknown_reasons['hw_power_brake_ratio']) as hw_power_brake_ratio_reason,
        min(unknown_reasons['any_throttle_ratio']) as any_throttle_ratio_reason,
        min(unknown_reasons['memory_used_ratio_max']) as memory_used_ratio_max_reason,
        min(unknown_reasons['memory_pressure_ratio']) as memory_pressure_ratio_reason,
        min(unknown_reasons['dram_active_max']) as dram_active_max_reason,
        min(unknown_reasons['sm_active_max']) as sm_active_max_reason,
        min(unknown_reasons['any_throttle_ratio_min']) as any_throttle_ratio_min_reason,
        if(count(xid_error_count) > 0, 'partial_devices', min(unknown_reasons['xid_error_count'])) as xid_error_count_reason,
        if(count(xid_codes) > 0, 'partial_devices', min(unknown_reasons['xid_codes'])) as xid_codes_reason,
        if(count(pcie_tx_bytes_per_second_avg) > 0, 'partial_devices', min(unknown_reasons['pcie_tx_bytes_per_second_avg'])) as pcie_tx_bytes_per_second_avg_reason,
        if(count(pcie_rx_bytes_per_second_avg) > 0, 'partial_devices', min(unknown_reasons['pcie_rx_bytes_per_second_avg'])) as pcie_rx_bytes_per_second_avg_reason,
        if(count(nvlink_tx_bytes_per_second_avg) > 0, 'partial_devices', min(unknown_reasons['nvlink_tx_bytes_per_second_avg'])) as nvlink_tx_bytes_per_second_avg_reason,
        if(count(nvlink_rx_bytes_per_second_avg) > 0, 'partial_devices', min(unknown_reasons['nvlink_rx_bytes_per_second_avg'])) as nvlink_rx_bytes_per_second_avg_reason,
        if(count(pcie_tx_ratio_avg) > 0, 'partial_devices', min(unknown_reasons['pcie_tx_ratio_avg'])) as pcie_tx_ratio_avg_reason,
        if(count(pcie_rx_ratio_avg) > 0, 'partial_devices', min(unknown_reasons['pcie_rx_ratio_avg'])) as pcie_rx_ratio_avg_reason,
        if(count(nvlink_tx_ratio_avg) > 0, 'partial_devices', min(unknown_reasons['nvlink_tx_ratio_avg'])) as nvlink_tx_ratio_avg_reason,
        if(count(nvlink_rx_ratio_avg) > 0, 'partial_devices', min(unknown_reasons['nvlink_rx_ratio_avg'])) as nvlink_rx_ratio_avg_reason
    from period.figure
    where subject = 'container_device'
    group by all
)

select
    total.cluster,
    total.namespace,
    total.pod,
    total.pod_uid,
    total.container,
    total.observed_seconds,
    total.observed_seconds / nullif(total.lifetime_seconds, 0) as coverage_ratio,
    total.gpu_usage_avg,
    total.gpu_util_ratio_avg,
    part.power_violation_ratio,
    part.thermal_violation_ratio,
    part.sync_boost_violation_ratio,
    part.board_limit_violation_ratio,
    part.sw_power_cap_ratio,
    part.hw_slowdown_ratio,
    part.sync_boost_ratio,
    part.sw_thermal_ratio,
    part.hw_thermal_ratio,
    part.hw_power_brake_ratio,
    part.any_throttle_ratio,
    total.memory_used_ratio_avg,
    part.memory_used_ratio_max,
    part.memory_pressure_ratio,
    part.xid_error_count,
    part.xid_codes,
    total.dram_active_avg,
    part.dram_active_max,
    total.sm_active_avg,
    part.sm_active_max,
    total.sm_occupancy_avg,
    total.tensor_active_avg,
    part.pcie_tx_bytes_per_second_avg,
    part.pcie_rx_bytes_per_second_avg,
    part.nvlink_tx_bytes_per_second_avg,
    part.nvlink_rx_bytes_per_second_avg,
    part.pcie_tx_ratio_avg,
    part.pcie_rx_ratio_avg,
    part.nvlink_tx_ratio_avg,
    part.nvlink_rx_ratio_avg,
    total.gpu_device,
    total.gpu_model,
    total.node_name,
    total.sharing_mode,
    total.sharing_evidence,
    'device' as scope,
    if(total.sharing_mode = 'mig', 'board', 'device') as throttle_scope,
    if(total.sharing_mode = 'mig', 'instance', 'device') as memory_scope,
    part.any_throttle_ratio_min,
    total.* similar to '^([^dlo]|dram).*_seconds$',
    total.device_seconds,
    part.device_count,
    total.source_metrics,
    unknown_reasons(map {
        'coverage_ratio': if(coalesce(total.lifetime_seconds, 0) > 0, null, 'lifetime_unknown'),
        'gpu_usage_avg': total.unknown_reasons['gpu_usage_avg'],
        'gpu_util_ratio_avg': total.unknown_reasons['gpu_util_ratio_avg'],
        'power_violation_ratio': if(part.power_violation_ratio is null, part.power_violation_ratio_reason, null),
        'thermal_violation_ratio': if(part.thermal_violation_ratio is null, part.thermal_violation_ratio_reason, null),
        'sync_boost_violation_ratio': if(part.sync_boost_violation_ratio is null, part.sync_boost_violation_ratio_reason, null),
        'board_limit_violation_ratio': if(part.board_limit_violation_ratio is null, part.board_limit_violation_ratio_reason, null),
        'sw_power_cap_ratio': if(part.sw_power_cap_ratio is null, part.sw_power_cap_ratio_reason, null),
        'hw_slowdown_ratio': if(part.hw_slowdown_ratio is null, part.hw_slowdown_ratio_reason, null),
        'sync_boost_ratio': if(part.sync_boost_ratio is null, part.sync_boost_ratio_reason, null),
        'sw_thermal_ratio': if(part.sw_thermal_ratio is null, part.sw_thermal_ratio_reason, null),
        'hw_thermal_ratio': if(part.hw_thermal_ratio is null, part.hw_thermal_ratio_reason, null),
        'hw_power_brake_ratio': if(part.hw_power_brake_ratio is null, part.hw_power_brake_ratio_reason, null),
        'any_throttle_ratio': if(part.any_throttle_ratio is null, part.any_throttle_ratio_reason, null),
        'memory_used_ratio_avg': total.unknown_reasons['memory_used_ratio_avg'],
        'memory_used_ratio_max': if(part.memory_used_ratio_max is null, part.memory_used_ratio_max_reason, null),
        'memory_pressure_ratio': if(part.memory_pressure_ratio is null, part.memory_pressure_ratio_reason, null),
        'xid_error_count': if(part.xid_error_count is null, part.xid_error_count_reason, null),
        'xid_codes': if(part.xid_codes is null, part.xid_codes_reason, null),
        'dram_active_avg': total.unknown_reasons['dram_active_avg'],
        'dram_active_max': if(part.dram_active_max is null, part.dram_active_max_reason, null),
        'sm_active_avg': total.unknown_reasons['sm_active_avg'],
        'sm_active_max': if(part.sm_active_max is null, part.sm_active_max_reason, null),
        'sm_occupancy_avg': total.unknown_reasons['sm_occupancy_avg'],
        'tensor_active_avg': total.unknown_reasons['tensor_active_avg'],
        'pcie_tx_bytes_per_second_avg': if(part.pcie_tx_bytes_per_second_avg is null, part.pcie_tx_bytes_per_second_avg_reason, null),
        'pcie_rx_bytes_per_second_avg': if(part.pcie_rx_bytes_per_second_avg is null, part.pcie_rx_bytes_per_second_avg_reason, null),
        'nvlink_tx_bytes_per_second_avg': if(part.nvlink_tx_bytes_per_second_avg is null, part.nvlink_tx_bytes_per_second_avg_reason, null),
        'nvlink_rx_bytes_per_second_avg': if(part.nvlink_rx_bytes_per_second_avg is null, part.nvlink_rx_bytes_per_second_avg_reason, null),
        'pcie_tx_ratio_avg': if(part.pcie_tx_ratio_avg is null, part.pcie_tx_ratio_avg_reason, null),
        'pcie_rx_ratio_avg': if(part.pcie_rx_ratio_avg is null, part.pcie_rx_ratio_avg_reason, null),
        'nvlink_tx_ratio_avg': if(part.nvlink_tx_ratio_avg is null, part.nvlink_tx_ratio_avg_reason, null),
        'nvlink_rx_ratio_avg': if(part.nvlink_rx_ratio_avg is null, part.nvlink_rx_ratio_avg_reason, null),
        'any_throttle_ratio_min': if(part.any_throttle_ratio_min is null, part.any_throttle_ratio_min_reason, null),
        'power_violation_seconds': total.unknown_reasons['power_violation_seconds'],
        'thermal_violation_seconds': total.unknown_reasons['thermal_violation_seconds'],
        'sync_boost_violation_seconds': total.unknown_reasons['sync_boost_violation_seconds'],
        'board_limit_violation_seconds': total.unknown_reasons['board_limit_violation_seconds'],
        'sw_power_cap_seconds': total.unknown_reasons['sw_power_cap_seconds'],
        'hw_slowdown_seconds': total.unknown_reasons['hw_slowdown_seconds'],
        'sync_boost_seconds': total.unknown_reasons['sync_boost_seconds'],
        'sw_thermal_seconds': total.unknown_reasons['sw_thermal_seconds'],
        'hw_thermal_seconds': total.unknown_reasons['hw_thermal_seconds'],
        'hw_power_brake_seconds': total.unknown_reasons['hw_power_brake_seconds'],
        'any_throttle_seconds': total.unknown_reasons['any_throttle_seconds'],
        'memory_pressure_seconds': total.unknown_reasons['memory_pressure_seconds']
    }) as unknown_reasons
from period.figure as total
inner join part
    using (cluster, namespace, pod, pod_uid, container)
where total.subject = 'container'
