-- Observed time of each signal per device and day, and the evidence for its absence.
--
-- Board signals are expected of whole GPUs; instance signals of the instances, or of a GPU that has none. Memory that is free
-- counts where memory in use is known beside it. Signals without seconds of their own in facts.device_hour (limits, totals, link
-- width) count by samples: their share of the device's most frequent signal. Signals that no stock metric carries and no figure
-- needs alone are listed where they come. A cause is given where more than 1 % of the device's seen time lacks the signal: a
-- counter's last sample of the day has no growth, which is no gap.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  facts.device_day, facts.device_signal, period.device_day
-- params: gpu_models, since_at, until_at, virtual_gpus
-- source: facts.device_hour; dcgm-exporter 50, 216 (MIG), 512 (driver 535), 700 (XID), 726 (links under MIG); DCGM 226, queries/catalog/gpu_model.csv (models)
-- columns:
--   observed_seconds     s in which the signal was known
--   unseen_seconds       s in which the device was expected and without data at all
--   lacking_seconds      s in which the device was seen and the signal not known
--   source_metric        metric that it was read from; several are listed; '' where none came
--   exporter             exporter that speaks for the device, '' where unknown
--   series_count         label sets that carried it
--   device_series_count  label sets that carried a signal of the device, as most did
--   sample_count         instants that were kept
--   left_out_count       values left out for the reason that is the cause; null where the cause is another
--   sibling_count        other signals that the device had on the day
--   profiling_count      profiling signals that the GPU had on the day
--   peer_count           GPUs of its model that had the signal by the same exporter
--   other_count          GPUs of any model in the cluster that had the signal by the same exporter
--   cause                why it lacks, a code; '' where it does not
with hourly as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        sum(columns('_seen_seconds$'))
    from facts.device_day
    group by all
),

reported as (
    select
        *,
        if(source_metric like 'dcgm\_%' escape '\', 'dcgm-exporter 1', exporter) as exporter_era,
        exporter = 'dcgm-exporter' and (contains(source_metric, '_PROF_') or contains(source_metric, '_prof_')) as is_profiling,
        max(sample_count) over (partition by cluster, device_uuid, gpu_instance_id, day) as most_count,
        median(series_count) over (partition by cluster, device_uuid, gpu_instance_id, day) as device_series_count
    from facts.device_signal
    where day < $until_at and day + interval 1 day > $since_at
),

-- What the GPU had on the day, MIG instances' signals among them.
gpu as (
    select
        cluster,
        device_uuid,
        day,
        coalesce(max(exporter) filter (where exporter = 'dcgm-exporter'), min(exporter)) as exporter,
        bool_or(exporter_era = 'dcgm-exporter 1') as has_old_names,
        count(distinct signal) filter (where sample_count > 0) as sibling_count,
        count(distinct signal) filter (where sample_count > 0 and is_profiling) as profiling_count,
        max(device_series_count)::bigint as device_series_count,
        string_agg(
            distinct source_metric, ', '
            order by source_metric
        ) filter (where signal in (
            'sw_power_cap_active_ratio', 'sync_boost_active_ratio', 'sw_thermal_active_ratio', 'hw_thermal_active_ratio',
            'hw_power_brake_active_ratio'
        )) as throttle_metrics
    from reported
    group by all
),

-- How many GPUs had the signal, by model.
peer as (
    select
        reported.cluster,
        reported.day,
        reported.signal,
        reported.exporter,
        device.gpu_model,
        count(distinct reported.device_uuid) as peer_count
    from reported
    inner join period.device_day as device
        using (cluster, device_uuid, gpu_instance_id, day)
    where reported.sample_count > 0
    group by all
),

-- By signal, so that they are joined to devices, which are few beside their signals.
peers as (
    select
        cluster,
        day,
        exporter,
        gpu_model,
        map_from_entries(list({ 'signal': signal, 'peer_count': peer_count })) as peer_counts
    from peer
    group by all
),

others as (
    select
        cluster,
        day,
        exporter,
        map_from_entries(list({ 'signal': signal, 'other_count': other_count })) as other_counts
    from (
        select
            cluster,
            day,
            exporter,
            signal,
            sum(peer_count)::bigint as other_count
        from peer
        group by all
    ) as other
    group by all
),

expected as (
    select
        device.*,
        gpu,
        peers.peer_counts,
        others.other_counts,
        unnest([
            { 'signal': 'power_watts', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.power_seen_seconds },
            { 'signal': 'power_limit_watts', 'is_board': true, 'needs': 'custom', 'seen_seconds': null },
            { 'signal': 'energy_joules', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.energy_seen_seconds },
            { 'signal': 'gpu_util_ratio', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.gpu_util_seen_seconds },
            { 'signal': 'mem_copy_util_ratio', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.mem_copy_util_seen_seconds },
            { 'signal': 'enc_util_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'dec_util_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'fb_used_bytes', 'is_board': false, 'needs': 'stock', 'seen_seconds': hourly.fb_used_seen_seconds },
            { 'signal': 'fb_free_bytes', 'is_board': false, 'needs': 'stock', 'seen_seconds': hourly.memory_seen_seconds },
            { 'signal': 'fb_reserved_bytes', 'is_board': false, 'needs': 'stock', 'seen_seconds': null },
            { 'signal': 'fb_total_bytes', 'is_board': false, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'sm_clock_hertz', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.sm_clock_seen_seconds },
            { 'signal': 'memory_clock_hertz', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.memory_clock_seen_seconds },
            { 'signal': 'gpu_temp_celsius', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.gpu_temp_seen_seconds },
            { 'signal': 'memory_temp_celsius', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.memory_temp_seen_seconds },
            { 'signal': 'gr_engine_active_ratio', 'is_board': false, 'needs': 'profiling', 'seen_seconds': hourly.gr_engine_active_seen_seconds },
            { 'signal': 'sm_active_ratio', 'is_board': false, 'needs': 'profiling custom', 'seen_seconds': hourly.sm_active_seen_seconds },
            { 'signal': 'sm_occupancy_ratio', 'is_board': false, 'needs': 'profiling custom', 'seen_seconds': hourly.sm_occupancy_seen_seconds },
            { 'signal': 'tensor_active_ratio', 'is_board': false, 'needs': 'profiling', 'seen_seconds': hourly.tensor_active_seen_seconds },
            { 'signal': 'fp64_active_ratio', 'is_board': false, 'needs': 'profiling custom', 'seen_seconds': hourly.fp64_active_seen_seconds },
            { 'signal': 'fp32_active_ratio', 'is_board': false, 'needs': 'profiling custom', 'seen_seconds': hourly.fp32_active_seen_seconds },
            { 'signal': 'fp16_active_ratio', 'is_board': false, 'needs': 'profiling custom', 'seen_seconds': hourly.fp16_active_seen_seconds },
            { 'signal': 'dram_active_ratio', 'is_board': false, 'needs': 'profiling', 'seen_seconds': hourly.dram_active_seen_seconds },
            { 'signal': 'pcie_tx_bytes_per_second', 'is_board': true, 'needs': 'profiling', 'seen_seconds': hourly.pcie_tx_seen_seconds },
            { 'signal': 'pcie_rx_bytes_per_second', 'is_board': true, 'needs': 'profiling', 'seen_seconds': hourly.pcie_rx_seen_seconds },
            { 'signal': 'nvlink_tx_bytes_per_second', 'is_board': true, 'needs': 'profiling custom', 'seen_seconds': hourly.nvlink_tx_seen_seconds },
            { 'signal': 'nvlink_rx_bytes_per_second', 'is_board': true, 'needs': 'profiling custom', 'seen_seconds': hourly.nvlink_rx_seen_seconds },
            { 'signal': 'nvlink_bytes_per_second', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'pcie_link_generation', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'pcie_link_width', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'throttle_reasons', 'is_board': true, 'needs': 'custom', 'seen_seconds': hourly.throttle_seen_seconds },
            { 'signal': 'sw_power_cap_active_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'sync_boost_active_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'sw_thermal_active_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'hw_thermal_active_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'hw_power_brake_active_ratio', 'is_board': true, 'needs': 'optional', 'seen_seconds': null },
            { 'signal': 'power_violation_seconds', 'is_board': true, 'needs': 'custom', 'seen_seconds': hourly.power_violation_seen_seconds },
            { 'signal': 'thermal_violation_seconds', 'is_board': true, 'needs': 'custom', 'seen_seconds': hourly.thermal_violation_seen_seconds },
            { 'signal': 'sync_boost_violation_seconds', 'is_board': true, 'needs': 'custom', 'seen_seconds': hourly.sync_boost_violation_seen_seconds },
            { 'signal': 'board_limit_violation_seconds', 'is_board': true, 'needs': 'custom', 'seen_seconds': hourly.board_limit_violation_seen_seconds },
            { 'signal': 'pcie_replay_count', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.pcie_replay_seen_seconds },
            { 'signal': 'xid_code', 'is_board': true, 'needs': 'stock', 'seen_seconds': hourly.xid_seen_seconds }
        ], recursive := true)
    from period.device_day as device
    left join hourly
        using (cluster, device_uuid, gpu_instance_id, day)
    left join gpu
        using (cluster, device_uuid, day)
    left join peers
        using (cluster, day, gpu_model, exporter)
    left join others
        using (cluster, day, exporter)
),

-- What GPUs of a model cannot have, whatever is configured.
model as (
    select unnest(from_json($gpu_models::json, '[{"gpu_model": "VARCHAR", "lacks": "VARCHAR"}]'), recursive := true)
),

lack as (
    select distinct
        device.gpu_model,
        unnest(string_split(model.lacks, ' ')) as signal
    from period.device_day as device
    inner join model on device.gpu_model glob model.gpu_model
),

-- Signals that the guest of a virtual GPU never has, whatever is configured.
virtual as (
    select unnest(from_json($virtual_gpus::json, '[{"gpu_model": "VARCHAR", "lacks": "VARCHAR"}]'), recursive := true)
),

guest as (
    select distinct
        device.gpu_model,
        unnest(string_split(virtual.lacks, ' ')) as signal
    from period.device_day as device
    inner join virtual on device.gpu_model glob virtual.gpu_model
),

joined as (
    select
        expected.cluster,
        expected.device_uuid,
        expected.gpu_instance_id,
        expected.day,
        expected.signal,
        expected.needs,
        expected.node_name,
        expected.gpu_model,
        expected.driver_version,
        expected.has_instances,
        try_cast(regexp_extract(expected.driver_version, '^\d+') as integer) as driver_major,
        expected.unknown_seconds as unseen_seconds,
        expected.observed_seconds as device_seconds,
        round(coalesce(
            expected.seen_seconds,
            expected.observed_seconds * reported.sample_count / nullif(reported.most_count, 0),
            0
        ), 3) as observed_seconds,
        reported.signal is not null as is_told,
        (expected.gpu_model, expected.signal) in (from lack) as is_not_on_model,
        (expected.gpu_model, expected.signal) in (from guest) as is_not_told_to_guest,
        coalesce(reported.source_metric, if(expected.signal = 'throttle_reasons', gpu.throttle_metrics, null), '') as source_metric,
        coalesce(reported.exporter, gpu.exporter, '') as exporter,
        coalesce(reported.series_count, 0) as series_count,
        coalesce(reported.device_series_count::bigint, gpu.device_series_count, 0) as device_series_count,
        coalesce(reported.sample_count, 0) as sample_count,
        coalesce(reported.dropped, map_from_entries([])) as dropped,
        -- Of several reasons why values were left out the most frequent.
        list_reverse_sort([
            { 'left_out_count': entry.value, 'reason': entry.key } for entry in map_entries(reported.dropped)
            if entry.key not in ('copy', 'duplicate')
        ])[1] as left_out,
        coalesce(gpu.sibling_count, 0) as sibling_count,
        coalesce(gpu.profiling_count, 0) as profiling_count,
        coalesce(gpu.has_old_names, false) as has_old_names,
        coalesce(expected.peer_counts[expected.signal], 0) as peer_count,
        coalesce(expected.other_counts[expected.signal], 0) as other_count
    from expected
    left join reported
        using (cluster, device_uuid, gpu_instance_id, day, signal)
    where
        if(expected.is_board, expected.gpu_instance_id = '', expected.gpu_instance_id != '' or not expected.has_instances)
        and (expected.needs != 'optional' or reported.signal is not null)
),

judged as (
    select
        *,
        greatest(0, round(device_seconds - observed_seconds, 3)) as lacking_seconds,
        -- Enough values were left out to explain at least half of what lacks.
        is_told and left_out.left_out_count * observed_seconds * 2 >= sample_count * (device_seconds - observed_seconds) as is_left_out,
        case
            when signal in ('gpu_util_ratio', 'mem_copy_util_ratio', 'enc_util_ratio', 'dec_util_ratio') then has_instances
            when signal like 'pcie_%x_bytes%' or signal like 'nvlink_%x_bytes%' then has_instances and profiling_count > 0
            else false
        end as is_undefined_by_mig,
        case
            when signal = 'fb_reserved_bytes' then driver_major < 510
            when signal like 'fb\_%' escape '\' then gpu_instance_id != '' and gpu_model like '%H100%' and driver_major = 535
            else false
        end as is_kept_by_driver
    from joined
)

select
    * exclude (
        needs, has_instances, driver_major, is_told, is_not_on_model, is_not_told_to_guest, left_out, has_old_names,
        is_left_out, is_undefined_by_mig, is_kept_by_driver
    ),
    case when is_left_out then left_out.left_out_count end as left_out_count,
    case
        when lacking_seconds <= 0.01 * device_seconds then ''
        when is_left_out then left_out.reason
        when is_told and sample_count = 1 then 'single_sample'
        when is_told then 'partial'
        when sibling_count = 0 then 'not_collected'
        when is_not_told_to_guest then 'virtual_gpu'
        when is_not_on_model then 'not_on_model'
        when exporter != 'dcgm-exporter' and peer_count > 0 then 'not_in_exporter_config'
        when exporter != 'dcgm-exporter' then 'not_published'
        when signal = 'xid_code' and not has_old_names then 'xid_absent_until_first_error'
        when is_undefined_by_mig then 'mig'
        when is_kept_by_driver then 'driver'
        when needs like 'profiling%' and profiling_count = 0 then 'no_dcp'
        when peer_count > 0 then 'not_in_exporter_config'
        when other_count > 0 then 'not_on_model'
        when needs like '%custom' then 'not_in_exporter_config'
        else 'not_collected'
    end as cause
from judged
