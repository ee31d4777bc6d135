-- Observed time of each signal of each device that had data on a day, and the evidence for its absence.
--
-- Board signals are expected of whole GPUs; instance signals of instances, or of a GPU without instances. Free memory counts where used memory is
-- also known. Signals without seconds of their own in facts.device_hour (limits, totals, link width) count by samples: their share of the samples of
-- the device's most frequent signal. Signals that no stock metric carries and no figure needs on its own are listed only where they have data. A
-- cause is given where more than 1 % of the device's observed time has no data of the signal. A counter's last sample of the day has no growth, which
-- is no gap.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  facts.device_hour, facts.device_signal, facts.expected_device
-- params: expected_signals, lacking_models, since_at, until_at
-- source: facts.device_hour; dcgm-exporter 50, 216 (MIG), 512 (driver 535), 700 (XID), 726 (links under MIG); DCGM 226, queries/catalog/gpu_model.csv (models)
-- columns:
--   observed_seconds     s in which the signal was known
--   lacking_seconds      s in which the device had data and the signal had none
--   source_metric        source metric; several are listed; '' without data
--   sample_count         samples kept
--   left_out_count       values left out for the reason in cause; null where the cause is another
--   sibling_count        other signals of the device on the day
--   other_count          GPUs of any model in the cluster with the signal from the same exporter
--   cause                cause of the missing data, a code; '' where there is none
with hourly as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        hour_start_at::date as day,
        sum(observed_seconds) as observed_seconds,
        min(hour_start_at) as first_hour_at,
        arg_max(node_name, hour_start_at) as seen_node_name,
        arg_max(gpu_model, hour_start_at) as seen_gpu_model,
        arg_max(driver_version, hour_start_at) as seen_driver_version,
        sum(columns('_seen_seconds$'))
    from facts.device_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by all
),

seen as (
    unpivot (select columns('^(cluster|device_uuid|gpu_instance_id|day)$|_seen_seconds$') from hourly)
    on columns('_seen_seconds$') into name seen_seconds value seconds
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

-- Signals that the GPU had on the day, with those of its MIG instances.
gpu as (
    select
        columns('^(cluster|device_uuid|day)$'),
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

-- Facts of older versions have no expected devices: there, devices with data are the expected ones.
due as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day)$'),
        coalesce(expected.node_name, hourly.seen_node_name) as node_name,
        coalesce(expected.gpu_model, hourly.seen_gpu_model) as gpu_model,
        coalesce(expected.driver_version, hourly.seen_driver_version) as driver_version,
        round(coalesce(hourly.observed_seconds, 0), 3) as observed_seconds,
        round(greatest(0, overlap_ms(
            coalesce(expected.due_from_at, hourly.first_hour_at), coalesce(expected.due_until_at, day + interval 1 day), $since_at::timestamp, $until_at::timestamp
        ) / 1000 - coalesce(hourly.observed_seconds, 0)), 3) as unseen_seconds
    from facts.expected_device as expected
    full join hourly
        using (cluster, device_uuid, gpu_instance_id, day)
),

device as (
    select
        *,
        bool_or(gpu_instance_id != '') over (partition by cluster, device_uuid, day) as has_instances
    from due
    where observed_seconds + unseen_seconds > 0
),

-- Number of GPUs with the signal, by model.
peer as (
    select
        reported.* similar to '^(cluster|day|signal|exporter)$',
        device.gpu_model,
        count(distinct reported.device_uuid) as peer_count
    from reported
    inner join device
        using (cluster, device_uuid, gpu_instance_id, day)
    where reported.sample_count > 0
    group by all
),

others as (
    select
        columns('^(cluster|day|signal|exporter)$'),
        sum(peer_count)::bigint as other_count
    from peer
    group by all
),

-- Signals that are expected of a GPU or an instance; optional ones only where an exporter has them.
catalog as (
    select unnest(
        from_json($expected_signals::json, '[{"signal": "VARCHAR", "is_board": "BOOLEAN", "needs": "VARCHAR", "seen_seconds": "VARCHAR"}]'),
        recursive := true
    )
),

expected as (
    select
        device.*,
        gpu,
        peer.peer_count,
        others.other_count,
        seen.seconds,
        catalog.*
    from device
    cross join catalog
    left join seen
        using (cluster, device_uuid, gpu_instance_id, day, seen_seconds)
    left join gpu
        using (cluster, device_uuid, day)
    left join peer
        using (cluster, day, signal, exporter, gpu_model)
    left join others
        using (cluster, day, signal, exporter)
    where device.observed_seconds > 0 or gpu.cluster is not null
),

-- Signals that GPUs of a model, or guests of virtual GPUs, never have, in any configuration.
lacking as (
    select unnest(from_json($lacking_models::json, '[{"gpu_model": "VARCHAR", "lacks": "VARCHAR", "cause": "VARCHAR"}]'), recursive := true)
),

lack as (
    select
        gpu_model,
        signal,
        max(cause) as never_cause
    from (
        select
            device.gpu_model,
            unnest(string_split(lacking.lacks, ' ')) as signal,
            lacking.cause
        from device
        inner join lacking on device.gpu_model glob lacking.gpu_model
    ) as each_signal
    group by all
),

joined as (
    select
        expected.* similar to '^(cluster|device_uuid|gpu_instance_id|day|signal|needs|node_name|gpu_model|driver_version|has_instances)$',
        try_cast(regexp_extract(expected.driver_version, '^\d+') as integer) as driver_major,
        expected.unseen_seconds,
        expected.observed_seconds as device_seconds,
        round(coalesce(
            expected.seconds,
            expected.observed_seconds * reported.sample_count / nullif(reported.most_count, 0),
            0
        ), 3) as observed_seconds,
        reported.signal is not null as is_reported,
        lack.never_cause,
        coalesce(reported.source_metric, if(expected.signal = 'throttle_reasons', gpu.throttle_metrics, null), '') as source_metric,
        coalesce(reported.exporter, gpu.exporter, '') as exporter,
        coalesce(reported.series_count, 0) as series_count,
        coalesce(reported.device_series_count::bigint, gpu.device_series_count, 0) as device_series_count,
        coalesce(reported.sample_count, 0) as sample_count,
        coalesce(reported.dropped, map_from_entries([])) as dropped,
        -- The most frequent one of several reasons for left-out values.
        list_reverse_sort([
            { 'left_out_count': entry.value, 'reason': entry.key } for entry in map_entries(reported.dropped)
            if entry.key not in ('copy', 'duplicate', 'coarser_unit')
        ])[1] as left_out,
        coalesce(gpu.sibling_count, 0) as sibling_count,
        coalesce(gpu.profiling_count, 0) as profiling_count,
        coalesce(gpu.has_old_names, false) as has_old_names,
        coalesce(expected.peer_count, 0) as peer_count,
        coalesce(expected.other_count, 0) as other_count
    from expected
    left join reported
        using (cluster, device_uuid, gpu_instance_id, day, signal)
    left join lack
        using (gpu_model, signal)
    where
        if(expected.is_board, expected.gpu_instance_id = '', expected.gpu_instance_id != '' or not expected.has_instances)
        and (expected.needs != 'optional' or reported.signal is not null)
),

judged as (
    select
        *,
        greatest(0, round(device_seconds - observed_seconds, 3)) as lacking_seconds,
        -- Enough values were left out to explain at least half of the missing time.
        is_reported and left_out.left_out_count * observed_seconds * 2 >= sample_count * (device_seconds - observed_seconds) as is_left_out,
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
        needs, has_instances, driver_major, is_reported, never_cause, left_out, has_old_names,
        is_left_out, is_undefined_by_mig, is_kept_by_driver
    ),
    case when is_left_out then left_out.left_out_count end as left_out_count,
    case
        when lacking_seconds <= 0.01 * device_seconds then ''
        when is_left_out then left_out.reason
        when is_reported and sample_count = 1 then 'single_sample'
        when is_reported then 'partial'
        when sibling_count = 0 then 'not_collected'
        when never_cause is not null then never_cause
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
