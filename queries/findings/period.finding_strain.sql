-- Findings: limiting factors of containers on their devices, such as bandwidth, input and output, latency, power, heat, hardware, memory.
--
-- None of a device that was seen for less than observed_seconds_min while held.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id
-- reads:  facts.container_day, period.boundness
-- params: observed_seconds_min
-- source: period.boundness
-- columns:
--   is_shared  whether others may have the same hours of the GPU
with first_hour as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        min(first_hour_at) as held_at,
        min(columns('^(power_at|heat_at|hardware_at|memory_at)$'))
    from facts.container_day
    group by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
),

ruled as (
    select
        bound.*,
        bound.device_seconds / 3600 as allocated_gpu_hours,
        unnest([
            {
                'code': 'GR201',
                'holds': bound.is_ineffective,
                'gpu_hours': bound.device_seconds / 3600,
                'evidence': format('busy {:.0f} % of the time, SM activity {:.0f} %', 100 * bound.busy_ratio, 100 * bound.sm_active_avg),
                'first_seen_at': first_hour.held_at
            },
            {
                'code': 'GR202',
                'holds': bound.is_bandwidth_bound,
                'gpu_hours': bound.device_seconds / 3600,
                'evidence': format('DRAM activity {:.0f} %, SM activity {:.0f} %', 100 * bound.dram_active_avg, 100 * bound.sm_active_avg),
                'first_seen_at': first_hour.held_at
            },
            {
                'code': 'GR203',
                'holds': bound.is_io_bound,
                'gpu_hours': bound.device_seconds / 3600,
                'evidence': format('{:.1f} GB/s over PCIe, SM activity {:.0f} %', bound.pcie_bytes_per_second_avg / 1e9, 100 * bound.sm_active_avg),
                'first_seen_at': first_hour.held_at
            },
            {
                'code': 'GR204',
                'holds': bound.is_latency_bound,
                'gpu_hours': bound.device_seconds / 3600,
                'evidence': format('engine active {:.0f} % of the time, SM activity {:.0f} %', 100 * bound.busy_ratio, 100 * bound.sm_active_avg),
                'first_seen_at': first_hour.held_at
            },
            {
                'code': 'GR301',
                'holds': bound.is_power_limited,
                'gpu_hours': bound.power_throttle_ratio * bound.device_seconds / 3600,
                'evidence': format('power capping {:.1f} % of the time', 100 * bound.power_throttle_ratio),
                'first_seen_at': first_hour.power_at
            },
            {
                'code': 'GR302',
                'holds': bound.is_heat_limited,
                'gpu_hours': bound.thermal_throttle_ratio * bound.device_seconds / 3600,
                'evidence': format('thermal throttling {:.1f} % of the time', 100 * bound.thermal_throttle_ratio),
                'first_seen_at': first_hour.heat_at
            },
            {
                'code': 'GR303',
                'holds': bound.is_hardware_limited,
                'gpu_hours': bound.hw_throttle_ratio * bound.device_seconds / 3600,
                'evidence': format('slowed down by the hardware {:.1f} % of the time', 100 * bound.hw_throttle_ratio),
                'first_seen_at': first_hour.hardware_at
            },
            {
                'code': 'GR310',
                'holds': bound.is_work_rejected,
                'gpu_hours': bound.memory_pressure_ratio * bound.device_seconds / 3600,
                'evidence': format(
                    'memory nearly full {:.1f} % of the time, {} XID error{}: {}', 100 * bound.memory_pressure_ratio, bound.xid_error_count,
                    if(bound.xid_error_count = 1, '', 's'), array_to_string(bound.xid_codes, ', ')
                ),
                'first_seen_at': first_hour.memory_at
            }
        ], recursive := true)
    from period.boundness as bound
    left join first_hour
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    where bound.device_seconds >= $observed_seconds_min
)

select
    code,
    columns('^(cluster|namespace|pod|pod_uid|container|node_name|device_uuid|gpu_instance_id|gpu_model|gpu_hours)$'),
    -- On a device that others hold too the figures are everybody's; of a MIG instance those of clocks and errors are the board's.
    case
        when code = 'GR310' then 'low'  -- memory is full by design where a program takes all of it at its start
        when sharing_mode = 'exclusive' then 'high'
        when sharing_mode = 'mig' then if(code < 'GR300', 'high', 'medium')
        else 'low'
    end as confidence,
    evidence,
    first_seen_at,
    sharing_mode not in ('exclusive', 'mig') as is_shared
from ruled
where holds
