-- Saturation figures of every subject of period.sum; each null figure has its reason.
--
-- Violation time above the observed time and half a minute, and more bytes than a link can carry, are implausible. A figure known for less than
-- $figure_min_coverage_ratio of the observed time is null (low_coverage).
--
-- grain:  subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  period.link, period.source, period.sum
-- params: figure_min_coverage_ratio, saturation_enabled
-- source: period.sum
-- columns:
--   device_seconds    s in which devices had data, added over devices
--   lifetime_seconds  s of the holder's life; null for a device, and where unknown
with split as (
    select distinct columns('^(cluster|device_uuid)$')
    from period.sum
    where subject = 'device' and gpu_instance_id != ''
),

placed as (
    select
        total.* replace (
            believed(power_violation_seconds, violation_limit(power_violation_seen_seconds)) as power_violation_seconds,
            believed(thermal_violation_seconds, violation_limit(thermal_violation_seen_seconds)) as thermal_violation_seconds,
            believed(sync_boost_violation_seconds, violation_limit(sync_boost_violation_seen_seconds)) as sync_boost_violation_seconds,
            believed(board_limit_violation_seconds, violation_limit(board_limit_violation_seen_seconds)) as board_limit_violation_seconds,
            believed(low_util_violation_seconds, violation_limit(low_util_violation_seen_seconds)) as low_util_violation_seconds,
            believed(reliability_violation_seconds, violation_limit(reliability_violation_seen_seconds)) as reliability_violation_seconds,
            believed(pcie_tx_bytes, pcie_tx_seen_seconds * link.pcie_bytes_per_second) as pcie_tx_bytes,
            believed(pcie_rx_bytes, pcie_rx_seen_seconds * link.pcie_bytes_per_second) as pcie_rx_bytes,
            believed(nvlink_tx_bytes, nvlink_tx_seen_seconds * link.nvlink_bytes_per_second) as nvlink_tx_bytes,
            believed(nvlink_rx_bytes, nvlink_rx_seen_seconds * link.nvlink_bytes_per_second) as nvlink_rx_bytes
        ),
        $figure_min_coverage_ratio * total.device_seconds as needed_seconds,
        if(total.subject = 'device' and total.gpu_instance_id != '', 'board_scope', null) as board_elsewhere,
        if(
            total.subject = 'device' and total.gpu_instance_id = '' and split.device_uuid is not null, 'instance_scope', null
        ) as instance_elsewhere,
        link.pcie_bytes_per_second,
        link.nvlink_bytes_per_second,
        source.source_metrics,
        source.left_out
    from period.sum as total
    left join split
        using (cluster, device_uuid)
    left join period.link as link
        using (cluster, device_uuid)
    left join period.source as source
        using (subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
),

judged as (
    select
        *,
        why_unknown(gr_engine_active_seen_seconds, instance_elsewhere, left_out['gr_engine_active_ratio'], needed_seconds) as gpu_usage_reason,
        -- NVML reports utilization only for the whole GPU, not for holders of an instance.
        case
            when gpu_instance_id != '' or sharing_mode = 'mig' then 'board_scope'
            when gpu_util_seen_seconds is null then coalesce(left_out['gpu_util_ratio'], 'not_collected')
            when gpu_util_seen_seconds < needed_seconds then 'low_coverage'
        end as gpu_util_reason,
        why_disbelieved(power_violation_seconds, power_violation_seen_seconds, power_violation_sample_count, board_elsewhere, left_out['power_violation_seconds'], needed_seconds) as power_violation_reason,
        why_disbelieved(thermal_violation_seconds, thermal_violation_seen_seconds, thermal_violation_sample_count, board_elsewhere, left_out['thermal_violation_seconds'], needed_seconds) as thermal_violation_reason,
        why_disbelieved(sync_boost_violation_seconds, sync_boost_violation_seen_seconds, sync_boost_violation_sample_count, board_elsewhere, left_out['sync_boost_violation_seconds'], needed_seconds) as sync_boost_violation_reason,
        why_disbelieved(board_limit_violation_seconds, board_limit_violation_seen_seconds, board_limit_violation_sample_count, board_elsewhere, left_out['board_limit_violation_seconds'], needed_seconds) as board_limit_violation_reason,
        why_disbelieved(low_util_violation_seconds, low_util_violation_seen_seconds, low_util_violation_sample_count, board_elsewhere, left_out['low_util_violation_seconds'], needed_seconds) as low_util_violation_reason,
        why_disbelieved(reliability_violation_seconds, reliability_violation_seen_seconds, reliability_violation_sample_count, board_elsewhere, left_out['reliability_violation_seconds'], needed_seconds) as reliability_violation_reason,
        why_unknown(
            columns('^(throttle|sw_power_cap|sync_boost|sw_thermal|hw_thermal|hw_power_brake)_seen_seconds$'), board_elsewhere, null, needed_seconds
        ) as '\1_reason',
        why_unknown(memory_seen_seconds, instance_elsewhere, left_out['fb_used_bytes'], needed_seconds) as memory_reason,
        why_unknown(dram_active_seen_seconds, instance_elsewhere, left_out['dram_active_ratio'], needed_seconds) as dram_active_reason,
        why_unknown(sm_active_seen_seconds, instance_elsewhere, left_out['sm_active_ratio'], needed_seconds) as sm_active_reason,
        why_unknown(sm_occupancy_seen_seconds, instance_elsewhere, left_out['sm_occupancy_ratio'], needed_seconds) as sm_occupancy_reason,
        why_unknown(tensor_active_seen_seconds, instance_elsewhere, left_out['tensor_active_ratio'], needed_seconds) as tensor_active_reason,
        why_disbelieved(pcie_tx_bytes, pcie_tx_seen_seconds, 0, board_elsewhere, left_out['pcie_tx_bytes_per_second'], needed_seconds) as pcie_tx_reason,
        why_disbelieved(pcie_rx_bytes, pcie_rx_seen_seconds, 0, board_elsewhere, left_out['pcie_rx_bytes_per_second'], needed_seconds) as pcie_rx_reason,
        why_disbelieved(nvlink_tx_bytes, nvlink_tx_seen_seconds, 0, board_elsewhere, left_out['nvlink_tx_bytes_per_second'], needed_seconds) as nvlink_tx_reason,
        why_disbelieved(nvlink_rx_bytes, nvlink_rx_seen_seconds, 0, board_elsewhere, left_out['nvlink_rx_bytes_per_second'], needed_seconds) as nvlink_rx_reason,
        coalesce(board_elsewhere, if(xid_event_count is null, 'not_collected', null)) as xid_reason
    from placed
),

enabled as (
    select
        columns(lambda name: not name.ends_with('_reason') or name = 'gpu_util_reason'),
        if($saturation_enabled, columns(lambda name: name.ends_with('_reason') and name != 'gpu_util_reason'), 'disabled') as "\0"
    from judged
),

figured as (
    select
        *,
        case when gpu_usage_reason is null then gr_engine_active_ratio_seconds / gr_engine_active_seen_seconds end as f_gpu_usage_avg,
        case when gpu_util_reason is null then gpu_util_ratio_seconds / gpu_util_seen_seconds end as f_gpu_util_ratio_avg,
        case when power_violation_reason is null then least(1, power_violation_seconds / power_violation_seen_seconds) end as f_power_violation_ratio,
        case when thermal_violation_reason is null then least(1, thermal_violation_seconds / thermal_violation_seen_seconds) end as f_thermal_violation_ratio,
        case when sync_boost_violation_reason is null then least(1, sync_boost_violation_seconds / sync_boost_violation_seen_seconds) end as f_sync_boost_violation_ratio,
        case when board_limit_violation_reason is null then least(1, board_limit_violation_seconds / board_limit_violation_seen_seconds) end as f_board_limit_violation_ratio,
        case when low_util_violation_reason is null then least(1, low_util_violation_seconds / low_util_violation_seen_seconds) end as f_low_util_violation_ratio,
        case when reliability_violation_reason is null then least(1, reliability_violation_seconds / reliability_violation_seen_seconds) end as f_reliability_violation_ratio,
        case when sw_power_cap_reason is null then least(1, sw_power_cap_seconds / sw_power_cap_seen_seconds) end as f_sw_power_cap_ratio,
        case when throttle_reason is null then hw_slowdown_seconds / throttle_seen_seconds end as f_hw_slowdown_ratio,
        case when sync_boost_reason is null then least(1, sync_boost_seconds / sync_boost_seen_seconds) end as f_sync_boost_ratio,
        case when sw_thermal_reason is null then least(1, sw_thermal_seconds / sw_thermal_seen_seconds) end as f_sw_thermal_ratio,
        case when hw_thermal_reason is null then least(1, hw_thermal_seconds / hw_thermal_seen_seconds) end as f_hw_thermal_ratio,
        case when hw_power_brake_reason is null then least(1, hw_power_brake_seconds / hw_power_brake_seen_seconds) end as f_hw_power_brake_ratio,
        -- Samples of the bitmask miss short reasons, which counters have.
        case when throttle_reason is null then greatest(
            any_throttle_seconds / throttle_seen_seconds,
            f_sw_power_cap_ratio, f_sync_boost_ratio, f_sw_thermal_ratio, f_hw_thermal_ratio, f_hw_power_brake_ratio
        ) end as f_any_throttle_ratio,
        case when memory_reason is null then memory_used_ratio_seconds / memory_seen_seconds end as f_memory_used_ratio_avg,
        case when memory_reason is null then memory_used_ratio_max end as f_memory_used_ratio_max,
        case when memory_reason is null then memory_pressure_seconds / memory_seen_seconds end as f_memory_pressure_ratio,
        case when xid_reason is null then xid_event_count end as f_xid_error_count,
        case when xid_reason is null then xid_codes end as f_xid_codes,
        case when dram_active_reason is null then dram_active_ratio_seconds / dram_active_seen_seconds end as f_dram_active_avg,
        case when dram_active_reason is null then dram_active_ratio_max end as f_dram_active_max,
        case when sm_active_reason is null then sm_active_ratio_seconds / sm_active_seen_seconds end as f_sm_active_avg,
        case when sm_active_reason is null then sm_active_ratio_max end as f_sm_active_max,
        case when sm_occupancy_reason is null then sm_occupancy_ratio_seconds / sm_occupancy_seen_seconds end as f_sm_occupancy_avg,
        case when tensor_active_reason is null then tensor_active_ratio_seconds / tensor_active_seen_seconds end as f_tensor_active_avg,
        case when pcie_tx_reason is null then pcie_tx_bytes / pcie_tx_seen_seconds end as f_pcie_tx_bytes_per_second_avg,
        case when pcie_rx_reason is null then pcie_rx_bytes / pcie_rx_seen_seconds end as f_pcie_rx_bytes_per_second_avg,
        case when nvlink_tx_reason is null then nvlink_tx_bytes / nvlink_tx_seen_seconds end as f_nvlink_tx_bytes_per_second_avg,
        case when nvlink_rx_reason is null then nvlink_rx_bytes / nvlink_rx_seen_seconds end as f_nvlink_rx_bytes_per_second_avg
    from enabled
),

bounded as (
    select
        *,
        columns('^f_(pcie_[tr]x)_bytes_per_second_avg$') / pcie_bytes_per_second as 'f_\1_ratio_avg',
        columns('^f_(nvlink_[tr]x)_bytes_per_second_avg$') / nvlink_bytes_per_second as 'f_\1_ratio_avg',
        -- The counters overlap in their causes: the largest is the lower bound of any throttling.
        greatest(
            f_power_violation_ratio, f_thermal_violation_ratio,
            f_sync_boost_violation_ratio, f_board_limit_violation_ratio,
            f_low_util_violation_ratio, f_reliability_violation_ratio
        ) as f_any_throttle_ratio_min
    from figured
),

reasoned as (
    select
        *,
        {
            'gpu_usage_avg': gpu_usage_reason,
            'gpu_util_ratio_avg': gpu_util_reason,
            'power_violation_ratio': power_violation_reason,
            'thermal_violation_ratio': thermal_violation_reason,
            'sync_boost_violation_ratio': sync_boost_violation_reason,
            'board_limit_violation_ratio': board_limit_violation_reason,
            'low_util_violation_ratio': low_util_violation_reason,
            'reliability_violation_ratio': reliability_violation_reason,
            'sw_power_cap_ratio': sw_power_cap_reason,
            'hw_slowdown_ratio': throttle_reason,
            'sync_boost_ratio': sync_boost_reason,
            'sw_thermal_ratio': sw_thermal_reason,
            'hw_thermal_ratio': hw_thermal_reason,
            'hw_power_brake_ratio': hw_power_brake_reason,
            'any_throttle_ratio': throttle_reason,
            'memory_used_ratio_avg': memory_reason,
            'memory_used_ratio_max': memory_reason,
            'memory_pressure_ratio': memory_reason,
            'xid_error_count': xid_reason,
            'xid_codes': xid_reason,
            'dram_active_avg': dram_active_reason,
            'dram_active_max': dram_active_reason,
            'sm_active_avg': sm_active_reason,
            'sm_active_max': sm_active_reason,
            'sm_occupancy_avg': sm_occupancy_reason,
            'tensor_active_avg': tensor_active_reason,
            'pcie_tx_bytes_per_second_avg': pcie_tx_reason,
            'pcie_rx_bytes_per_second_avg': pcie_rx_reason,
            'nvlink_tx_bytes_per_second_avg': nvlink_tx_reason,
            'nvlink_rx_bytes_per_second_avg': nvlink_rx_reason,
            'pcie_tx_ratio_avg': coalesce(pcie_tx_reason, case when pcie_bytes_per_second is null then 'link_unknown' end),
            'pcie_rx_ratio_avg': coalesce(pcie_rx_reason, case when pcie_bytes_per_second is null then 'link_unknown' end),
            'nvlink_tx_ratio_avg': coalesce(nvlink_tx_reason, case when nvlink_bytes_per_second is null then 'link_unknown' end),
            'nvlink_rx_ratio_avg': coalesce(nvlink_rx_reason, case when nvlink_bytes_per_second is null then 'link_unknown' end),
            'any_throttle_ratio_min': if(f_any_throttle_ratio_min is null, power_violation_reason, null),
            'power_violation_seconds': if($saturation_enabled and power_violation_seconds is not null, null, power_violation_reason),
            'thermal_violation_seconds': if($saturation_enabled and thermal_violation_seconds is not null, null, thermal_violation_reason),
            'sync_boost_violation_seconds': if($saturation_enabled and sync_boost_violation_seconds is not null, null, sync_boost_violation_reason),
            'board_limit_violation_seconds': if($saturation_enabled and board_limit_violation_seconds is not null, null, board_limit_violation_reason),
            'low_util_violation_seconds': if($saturation_enabled and low_util_violation_seconds is not null, null, low_util_violation_reason),
            'reliability_violation_seconds': if($saturation_enabled and reliability_violation_seconds is not null, null, reliability_violation_reason),
            'sw_power_cap_seconds': if($saturation_enabled and sw_power_cap_seconds is not null, null, sw_power_cap_reason),
            'hw_slowdown_seconds': if($saturation_enabled and hw_slowdown_seconds is not null, null, throttle_reason),
            'sync_boost_seconds': if($saturation_enabled and sync_boost_seconds is not null, null, sync_boost_reason),
            'sw_thermal_seconds': if($saturation_enabled and sw_thermal_seconds is not null, null, sw_thermal_reason),
            'hw_thermal_seconds': if($saturation_enabled and hw_thermal_seconds is not null, null, hw_thermal_reason),
            'hw_power_brake_seconds': if($saturation_enabled and hw_power_brake_seconds is not null, null, hw_power_brake_reason),
            'any_throttle_seconds': if($saturation_enabled and any_throttle_seconds is not null, null, throttle_reason),
            'memory_pressure_seconds': if($saturation_enabled and memory_pressure_seconds is not null, null, memory_reason)
        } as reasons
    from bounded
),

-- Most rows have the same few reasons: each set of them is computed once.
reason_set as (
    select
        reasons,
        unknown_reasons(map_entries(cast(to_json(reasons) as map (varchar, varchar)))) as unknown_reasons,
        row_number() over () as reasons_code
    from (select distinct reasons from reasoned) as each_set
)

select
    columns('^(subject|cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|observed_seconds|device_seconds|lifetime_seconds)$'),
    columns('^f_(.*)$') as "\1",
    if(fb_used_seen_seconds >= needed_seconds, fb_used_byte_seconds / fb_used_seen_seconds, null) as memory_used_bytes,
    columns('^(gpu_device|gpu_model|node_name|sharing_mode|sharing_evidence)$'),
    coalesce(gr_engine_active_seen_seconds, 0) as gpu_usage_seen_seconds,
    if(gpu_util_reason = 'board_scope', 0, coalesce(gpu_util_seen_seconds, 0)) as gpu_util_seen_seconds,
    case when $saturation_enabled then power_violation_seconds end as power_violation_seconds,
    coalesce(power_violation_seen_seconds, 0) as power_violation_seen_seconds,
    case when $saturation_enabled then thermal_violation_seconds end as thermal_violation_seconds,
    coalesce(thermal_violation_seen_seconds, 0) as thermal_violation_seen_seconds,
    case when $saturation_enabled then sync_boost_violation_seconds end as sync_boost_violation_seconds,
    coalesce(sync_boost_violation_seen_seconds, 0) as sync_boost_violation_seen_seconds,
    case when $saturation_enabled then columns('^(board_limit|low_util|reliability)_violation_seconds$') end as "\0",
    coalesce(columns('^(board_limit|low_util|reliability)_violation_seen_seconds$'), 0) as "\0",
    case when $saturation_enabled then columns('^(sw_power_cap|hw_slowdown|sync_boost|sw_thermal|hw_thermal|hw_power_brake)_seconds$') end as "\0",
    case when $saturation_enabled then greatest(any_throttle_seconds, f_any_throttle_ratio * throttle_seen_seconds) end as any_throttle_seconds,
    coalesce(throttle_seen_seconds, 0) as throttle_seen_seconds,
    case when $saturation_enabled then memory_pressure_seconds end as memory_pressure_seconds,
    coalesce(memory_seen_seconds, 0) as memory_seen_seconds,
    coalesce(columns('^(dram_active|sm_active|sm_occupancy|tensor_active|pcie_tx|pcie_rx|nvlink_tx|nvlink_rx)_seen_seconds$'), 0) as "\0",
    source_metrics,
    reason_set.unknown_reasons,
    reason_set.reasons_code
from reasoned
inner join reason_set
    using (reasons)
