-- Which signals came from which node: the device time in which each was expected, and seen.
--
-- Expected is the time in which the devices were seen by any signal; a counter's time ends with its last sample.
--
-- grain:  cluster, signal, node_name
-- reads:  facts.device_hour
-- params: since_at, until_at
-- source: facts.device_hour
-- columns:
--   cluster           cluster name
--   signal            canonical signal, without its unit
--   node_name         node, '' where unknown
--   device_count      devices and MIG instances of which the signal is expected
--   expected_seconds  s in which those devices were seen
--   observed_seconds  s in which the signal was known
--   coverage_ratio    0..1, observed over expected
--   reason            not_collected, partial (under 0.99), or '' where it is whole
with within as (
    select
        *,
        bool_or(gpu_instance_id != '') over (partition by cluster, device_uuid) as has_instances
    from facts.device_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
),

signal as (
    select
        cluster,
        node_name,
        device_uuid,
        gpu_instance_id,
        has_instances,
        observed_seconds,
        unnest([
            { 'signal': 'power', 'is_board': true, 'seen_seconds': power_seen_seconds },
            { 'signal': 'energy', 'is_board': true, 'seen_seconds': energy_seen_seconds },
            { 'signal': 'gpu_util', 'is_board': true, 'seen_seconds': gpu_util_seen_seconds },
            { 'signal': 'mem_copy_util', 'is_board': true, 'seen_seconds': mem_copy_util_seen_seconds },
            { 'signal': 'fb_used', 'is_board': false, 'seen_seconds': fb_used_seen_seconds },
            { 'signal': 'memory', 'is_board': false, 'seen_seconds': memory_seen_seconds },
            { 'signal': 'gpu_temp', 'is_board': true, 'seen_seconds': gpu_temp_seen_seconds },
            { 'signal': 'memory_temp', 'is_board': true, 'seen_seconds': memory_temp_seen_seconds },
            { 'signal': 'sm_clock', 'is_board': true, 'seen_seconds': sm_clock_seen_seconds },
            { 'signal': 'memory_clock', 'is_board': true, 'seen_seconds': memory_clock_seen_seconds },
            { 'signal': 'gr_engine_active', 'is_board': false, 'seen_seconds': gr_engine_active_seen_seconds },
            { 'signal': 'sm_active', 'is_board': false, 'seen_seconds': sm_active_seen_seconds },
            { 'signal': 'sm_occupancy', 'is_board': false, 'seen_seconds': sm_occupancy_seen_seconds },
            { 'signal': 'tensor_active', 'is_board': false, 'seen_seconds': tensor_active_seen_seconds },
            { 'signal': 'fp64_active', 'is_board': false, 'seen_seconds': fp64_active_seen_seconds },
            { 'signal': 'fp32_active', 'is_board': false, 'seen_seconds': fp32_active_seen_seconds },
            { 'signal': 'fp16_active', 'is_board': false, 'seen_seconds': fp16_active_seen_seconds },
            { 'signal': 'dram_active', 'is_board': false, 'seen_seconds': dram_active_seen_seconds },
            { 'signal': 'pcie_tx', 'is_board': true, 'seen_seconds': pcie_tx_seen_seconds },
            { 'signal': 'pcie_rx', 'is_board': true, 'seen_seconds': pcie_rx_seen_seconds },
            { 'signal': 'nvlink_tx', 'is_board': true, 'seen_seconds': nvlink_tx_seen_seconds },
            { 'signal': 'nvlink_rx', 'is_board': true, 'seen_seconds': nvlink_rx_seen_seconds },
            { 'signal': 'throttle', 'is_board': true, 'seen_seconds': throttle_seen_seconds },
            { 'signal': 'power_violation', 'is_board': true, 'seen_seconds': power_violation_seen_seconds },
            { 'signal': 'thermal_violation', 'is_board': true, 'seen_seconds': thermal_violation_seen_seconds },
            { 'signal': 'sync_boost_violation', 'is_board': true, 'seen_seconds': sync_boost_violation_seen_seconds },
            { 'signal': 'board_limit_violation', 'is_board': true, 'seen_seconds': board_limit_violation_seen_seconds },
            { 'signal': 'pcie_replay', 'is_board': true, 'seen_seconds': pcie_replay_seen_seconds },
            { 'signal': 'xid', 'is_board': true, 'seen_seconds': xid_seen_seconds }
        ], recursive := true)
    from within
)

select
    cluster,
    signal,
    node_name,
    count(distinct device_uuid || '/' || gpu_instance_id) as device_count,
    sum(observed_seconds) as expected_seconds,
    coalesce(sum(seen_seconds), 0) as observed_seconds,
    coalesce(sum(seen_seconds), 0) / nullif(sum(observed_seconds), 0) as coverage_ratio,
    case
        when sum(seen_seconds) is null then 'not_collected'
        -- A counter's last sample of the day has no growth: that is no gap.
        when sum(seen_seconds) < 0.99 * sum(observed_seconds) then 'partial'
        else ''
    end as reason
from signal
-- Board signals are expected of whole GPUs; instance signals of the instances, or of a GPU that has none.
where if(is_board, gpu_instance_id = '', gpu_instance_id != '' or not has_instances)
group by cluster, signal, node_name
order by all
