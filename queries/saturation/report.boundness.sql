-- Limiting factor of each container on each of its devices, as a sentence with the numbers; no score.
--
-- period.boundness has the rules. Without measured SM activity, the limiting factor is unknown.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  period.boundness
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, node_name, gpu_model, bound_by, boundness, scope
with sentenced as (
    select
        *,
        [entry for entry in [
            if(is_compute_bound, 'compute', null),
            if(is_bandwidth_bound, 'bandwidth', null),
            if(is_io_bound, 'io', null),
            if(is_latency_bound, 'latency', null),
            if(is_ineffective, 'ineffective', null),
            if(is_power_limited, 'power', null),
            if(is_heat_limited, 'heat', null),
            if(is_hardware_limited, 'hardware', null),
            if(is_work_rejected, 'rejected', null),
            if(is_memory_pressured and not coalesce(is_work_rejected, false), 'memory', null)
        ] if entry is not null] as limits,
        device_seconds < 60 as is_short,
        concat_ws(
            ', ',
            if(is_bandwidth_bound is null, 'DRAM activity', null),
            if(is_io_bound is null, 'PCIe traffic', null),
            if(is_latency_bound is null or is_ineffective is null, 'engine activity', null),
            if(is_power_limited is null, 'power capping', null),
            if(is_heat_limited is null, 'thermal throttling', null),
            if(is_hardware_limited is null, 'hardware slowdown', null),
            if(is_memory_pressured is null, 'memory', null)
        ) as unknown_limits,
        [
            case limit_name
                when 'compute' then format('Compute-bound: SM activity {:.0f} %.', 100 * sm_active_avg)
                when 'bandwidth' then format('Bandwidth-bound: DRAM activity {:.0f} %, SM activity {:.0f} %.', 100 * dram_active_avg, 100 * sm_active_avg)
                when 'io' then format('IO-bound: {:.1f} GB/s over PCIe, SM activity {:.0f} %.', pcie_bytes_per_second_avg / 1e9, 100 * sm_active_avg)
                when 'latency' then format('Latency-bound: the engine is active {:.0f} % of the time, SM activity {:.0f} %.', 100 * gpu_usage_avg, 100 * sm_active_avg)
                when 'ineffective' then format('Underutilized: busy {:.0f} % of the time, SM activity {:.0f} %.', 100 * busy_ratio, 100 * sm_active_avg)
                when 'power' then format('Power capping {:.1f} % of the time.', 100 * power_throttle_ratio)
                when 'heat' then format('Thermal throttling {:.1f} % of the time.', 100 * thermal_throttle_ratio)
                when 'hardware' then format('Hardware slowdown {:.1f} % of the time.', 100 * hw_throttle_ratio)
                when 'rejected' then format('Memory nearly full {:.1f} % of the time and XID {}: allocations probably failed.', 100 * memory_pressure_ratio, array_to_string(program_xid_codes, ', '))
                when 'memory' then format('Memory nearly full {:.1f} % of the time.', 100 * memory_pressure_ratio)
            end
            for limit_name in limits
        ] as sentences
    from period.boundness
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|node_name|gpu_model)$'),
    if(is_short or len(limits) = 0, 'unclear', array_to_string(limits, ', ')) as bound_by,
    case
        when is_short then 'Too little data.'
        when len(limits) > 0 then array_to_string(sentences, ' ')
        when busy_ratio < 0.001 then 'Not active.'
        when sm_active_avg is null then 'Unknown: SM activity is measured for too little of the time, or not at all.'
        when unknown_limits != '' then format('No known resource is saturated: SM activity {:.0f} %. Unknown: {}.', 100 * sm_active_avg, unknown_limits)
        else format('No resource is saturated: SM activity {:.0f} %; a faster GPU may not help.', 100 * sm_active_avg)
    end as boundness,
    'device' as scope
from sentenced
