-- Limiting factor of each container on each of its devices, by rules over the window's figures; never a score.
--
-- A rule without one of its figures is null: unknown, not false. Utilization is the larger of engine activity and GPU utilization.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  period.figure, period.sum
-- params: busy_ratio, ineffective_sm_ratio, throttle_ratio
-- source: period.figure; rules: NVIDIA's guidance on profiling metrics (SM activity of 0.8 is needed for good use, below 0.5 is likely ineffective)
with figure as (
    select
        figure.*,
        total.gpu_instance_profile
    from period.figure as figure
    left join period.sum as total
        using (subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    where figure.subject = 'container_device'
),

measured as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        columns('^(node_name|gpu_model|sharing_mode|device_seconds)$'),
        device_seconds / 3600 * if(gpu_instance_id = '', 1, partition_ratio(gpu_instance_profile, gpu_model)) as gpu_hours,
        -- greatest leaves out nulls.
        greatest(gpu_usage_avg, gpu_util_ratio_avg) as busy_ratio,
        columns('^(gpu_usage_avg|sm_active_avg|dram_active_avg|memory_pressure_ratio)$'),
        pcie_tx_bytes_per_second_avg + pcie_rx_bytes_per_second_avg as pcie_bytes_per_second_avg,
        greatest(power_violation_ratio, sw_power_cap_ratio) as power_throttle_ratio,
        greatest(thermal_violation_ratio, sw_thermal_ratio, hw_thermal_ratio) as thermal_throttle_ratio,
        greatest(hw_slowdown_ratio, hw_power_brake_ratio) as hw_throttle_ratio,
        [code for code in xid_codes if code in (13, 31, 43)] as program_xid_codes
    from figure
),

ruled as (
    select
        measured.*,
        measured.sm_active_avg >= 0.8 as is_compute_bound,
        measured.dram_active_avg >= 0.5 and measured.sm_active_avg < $ineffective_sm_ratio as is_bandwidth_bound,
        -- SM activity of an instance does not rule out load on the links of the whole board, nor does that of an inactive device.
        if(
            measured.gpu_instance_id = '',
            measured.pcie_bytes_per_second_avg >= 1e9 and measured.sm_active_avg < 0.3 and measured.sm_active_avg >= 0.001,
            null
        ) as is_io_bound,
        measured.gpu_usage_avg >= 0.4 and measured.sm_active_avg < 0.25 as is_slow_to_start,
        measured.power_throttle_ratio > $throttle_ratio as is_power_limited,
        measured.thermal_throttle_ratio > $throttle_ratio as is_heat_limited,
        measured.hw_throttle_ratio > 0.01 as is_hardware_limited,
        measured.memory_pressure_ratio > 0 as is_memory_pressured,
        measured.busy_ratio >= $busy_ratio and measured.sm_active_avg < $ineffective_sm_ratio as is_low
    from measured
)

select
    * exclude (is_slow_to_start, is_low),
    is_slow_to_start
    and not coalesce(is_bandwidth_bound, false)
    and not coalesce(is_io_bound, false) as is_latency_bound,
    is_low
    and not coalesce(is_bandwidth_bound, false)
    and not coalesce(is_io_bound, false)
    and not coalesce(is_slow_to_start, false) as is_ineffective,
    is_memory_pressured and len(program_xid_codes) > 0 as is_work_rejected
from ruled
