-- Findings: limiting factors of containers on their devices, and containers that would fit a MIG instance or a smaller model of the cluster.
--
-- Limiting factors are bandwidth, input and output, latency, power, heat, hardware, memory. A device with data for less than ten minutes while
-- allocated has no finding.
--
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, gpu_model, detail
-- reads:  facts.container_day, period.boundness, period.fit
-- params: findings_gpu_hours
-- source: period.boundness; period.fit
-- columns:
--   detail     smallest fitting profile, else model
--   is_shared  whether other holders may have the same hours of the GPU
with limited as (
    from period.boundness
    where
        round(device_seconds, 6) >= 600
        and (
            is_ineffective or is_bandwidth_bound or is_io_bound or is_latency_bound
            or is_power_limited or is_heat_limited or is_hardware_limited or is_work_rejected
        )
),

first_hour as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        min(first_hour_at) as held_at,
        min(columns('^(power_at|heat_at|hardware_at|memory_at)$'))
    from facts.container_day
    semi join limited
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    group by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
),

ruled as (
    select
        bound.* exclude (gpu_hours),
        unnest([
            {
                'code': 'GR201', 'holds': bound.is_ineffective, 'gpu_hours': bound.gpu_hours, 'first_seen_at': first_hour.held_at,
                'evidence': format('busy {:.0f} % of the time, SM activity {:.0f} %', 100 * bound.busy_ratio, 100 * bound.sm_active_avg)
            },
            {
                'code': 'GR202', 'holds': bound.is_bandwidth_bound, 'gpu_hours': bound.gpu_hours, 'first_seen_at': first_hour.held_at,
                'evidence': format('DRAM activity {:.0f} %, SM activity {:.0f} %', 100 * bound.dram_active_avg, 100 * bound.sm_active_avg)
            },
            {
                'code': 'GR203', 'holds': bound.is_io_bound, 'gpu_hours': bound.gpu_hours, 'first_seen_at': first_hour.held_at,
                'evidence': format('{:.1f} GB/s over PCIe, SM activity {:.0f} %', bound.pcie_bytes_per_second_avg / 1e9, 100 * bound.sm_active_avg)
            },
            {
                'code': 'GR204', 'holds': bound.is_latency_bound, 'gpu_hours': bound.gpu_hours, 'first_seen_at': first_hour.held_at,
                'evidence': format('engine active {:.0f} % of the time, SM activity {:.0f} %', 100 * bound.gpu_usage_avg, 100 * bound.sm_active_avg)
            },
            {
                'code': 'GR301', 'holds': bound.is_power_limited, 'gpu_hours': bound.power_throttle_ratio * bound.gpu_hours, 'first_seen_at': first_hour.power_at,
                'evidence': format('power capping {:.1f} % of the time', 100 * bound.power_throttle_ratio)
            },
            {
                'code': 'GR302', 'holds': bound.is_heat_limited, 'gpu_hours': bound.thermal_throttle_ratio * bound.gpu_hours, 'first_seen_at': first_hour.heat_at,
                'evidence': format('thermal throttling {:.1f} % of the time', 100 * bound.thermal_throttle_ratio)
            },
            {
                'code': 'GR303', 'holds': bound.is_hardware_limited, 'gpu_hours': bound.hw_throttle_ratio * bound.gpu_hours, 'first_seen_at': first_hour.hardware_at,
                'evidence': format('hardware slowdown {:.1f} % of the time', 100 * bound.hw_throttle_ratio)
            },
            {
                'code': 'GR310', 'holds': bound.is_work_rejected, 'gpu_hours': bound.memory_pressure_ratio * bound.gpu_hours, 'first_seen_at': first_hour.memory_at,
                'evidence': format(
                    'memory nearly full {:.1f} % of the time, XID {}', 100 * bound.memory_pressure_ratio, array_to_string(bound.program_xid_codes, ', ')
                )
            }
        ], recursive := true)
    from limited as bound
    left join first_hour
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
)

select
    code,
    columns('^(cluster|namespace|pod|pod_uid|container|node_name|device_uuid|gpu_instance_id|gpu_model|gpu_hours)$'),
    -- On a shared device the figures belong to all holders; on a MIG instance, clocks and errors belong to the board.
    case
        when code = 'GR310' then 'low'  -- some programs take all memory at start, by design
        when sharing_mode = 'exclusive' then 'high'
        when sharing_mode = 'mig' then if(code < 'GR300', 'high', 'medium')
        else 'low'
    end as confidence,
    evidence,
    first_seen_at,
    sharing_mode not in ('exclusive', 'mig') as is_shared
from ruled
where holds

union all by name

select
    'GR210' as code,
    coalesce(nullif(profile, ''), smaller_model) as detail,
    columns('^(cluster|namespace|workload_kind|workload|pod|pod_uid|container|node_name|device_uuid)$'),
    gpu_model,
    allocated_gpu_hours * (1 - 1 / instance_count) as gpu_hours,
    -- A model is judged by data sheets alone; on a MIG profile that is too small at peak times, those times get longer.
    case when profile = '' then 'low' when is_peak_within then 'high' else 'medium' end as confidence,
    concat(
        if(pod_count = 1, '', format('{:,} pods for {:,.0f} h; ', pod_count, allocated_gpu_hours)),
        format(
            'busiest hour: SM activity {:.0f} %, occupancy {:.0f} %, DRAM activity {:.0f} %; peak memory {:.1f} GB',
            100 * busiest_sm_active_ratio, 100 * busiest_sm_occupancy_ratio, 100 * busiest_dram_active_ratio, memory_used_bytes_max / 1e9
        ),
        if(profile = '', '', format('; up to {} x {} on the GPU', instance_count, profile)),
        if(profile = '' or is_peak_within, '', format(', but SM activity peaks at {:.0f} %', 100 * sm_active_ratio_max)),
        if(smaller_model = '', '', '; the cluster has the smaller ' || smaller_model)
    ) as evidence,
    first_seen_at
from period.fit
where
    (profile != '' or smaller_model != '')
    and round(allocated_gpu_hours, 9) >= 24
    and round(coalesce(allocated_gpu_hours * (1 - 1 / instance_count), allocated_gpu_hours), 9) >= $findings_gpu_hours
