-- Data coverage of each signal, node and day: device time expected, observed and unknown, with the reason.
--
-- Observed and unknown add up to expected. Each node has two rows beside the signals. 'any' shows whether its GPUs have any data (the only row with
-- GPUs that Kubernetes lists and no exporter reports). 'workload' shows whether their holders are known. The reason is the one with the most unknown
-- time; '' where at most 1 % is unknown: a counter's last sample has no growth.
--
-- grain:  cluster, signal, node_name, day
-- reads:  facts.refuted_holder, period.device_day, period.holder_day, period.node_gap, period.signal_day
-- source: period.signal_day, period.holder_day, period.node_gap
-- columns: cluster, signal, node_name, day, coverage_ratio, reason, evidence, source_metrics, expected_device_count, observed_device_count,
--          expected_series_count, observed_series_count, expected_device_seconds, observed_device_seconds, unknown_device_seconds, dropped
--   signal                   canonical signal; any for the device itself; workload for its holder
--   reason                   most likely reason of unknown time, a code; '' where at most 1 % is unknown
--   evidence                 evidence for the reason; for workload also pods of the cluster that labels name and that cannot hold a GPU
--   source_metrics           source metrics; several are listed
with gpu as (
    select
        cluster,
        day,
        max(columns('^(node_name|expected_seconds|observed_seconds|last_seen_at)$')),
        max(expected_seconds) - max(observed_seconds) as unknown_seconds,
        any_value(known_day) as known_day,
        any_value(silent_hours) filter (where len(silent_hours) between 1 and 12) as silent_hours
    from period.device_day
    group by cluster, device_uuid, day
),

part as (
    select
        columns('^(cluster|signal|node_name|day|observed_seconds|unseen_seconds)$'),
        unseen_seconds + lacking_seconds as unknown_seconds,
        columns('^(device_count|observed_count|expected_series_count|series_count|source_metrics|dropped)$')
    from period.signal_day
    union all by name
    select
        cluster,
        'workload' as signal,
        columns('^(node_name|day|observed_seconds|unseen_seconds)$'),
        unseen_seconds + lacking_seconds as unknown_seconds,
        1 as device_count,
        (observed_seconds > 0)::integer as observed_count
    from period.holder_day
    union all by name
    select
        columns('^(cluster|node_name|day|observed_seconds|unknown_seconds)$'),
        'any' as signal,
        unknown_seconds as unseen_seconds,
        1 as device_count,
        (observed_seconds > 0)::integer as observed_count
    from gpu
    union all by name
    select
        * exclude (reason, evidence),
        'any' as signal,
        0 as observed_seconds,
        0 as observed_count
    from period.node_gap
),

total as (
    select
        columns('^(cluster|signal|node_name|day)$'),
        sum(device_count)::bigint as expected_device_count,
        sum(observed_count)::bigint as observed_device_count,
        coalesce(sum(expected_series_count), 0)::bigint as expected_series_count,
        coalesce(sum(series_count), 0)::bigint as observed_series_count,
        round(sum(observed_seconds), 3) as observed_device_seconds,
        round(sum(unknown_seconds), 3) as unknown_device_seconds,
        array_to_string(list_sort(list_distinct(flatten(list(source_metrics)))), ', ') as source_metrics,
        added_counts(coalesce(list(dropped) filter (where cardinality(dropped) > 0), [])) as dropped
    from part
    group by all
),

-- GPUs of a node that lost their data: all of them, or some while others had data.
silent as (
    select
        columns('^(cluster|node_name|day)$'),
        count(*) as device_count,
        count(*) filter (where unknown_seconds > 0.01 * expected_seconds) as silent_count,
        min(unknown_seconds) >= 0.5 * max(unknown_seconds) as is_together,
        sum(unknown_seconds) as unknown_seconds,
        max(last_seen_at) filter (where unknown_seconds > 0.01 * expected_seconds) as last_seen_at,
        any_value(known_day) as known_day,
        list_sort(list_distinct(flatten(list(silent_hours)))) as silent_hours
    from gpu
    group by cluster, node_name, day
),

of_containers as (
    select distinct
        columns('^(cluster|node_name|day)$'),
        -- A day without any sample is like the node's other days.
        coalesce(
            bool_and(is_of_containers) over (partition by cluster, node_name, day),
            bool_and(is_of_containers) over (partition by cluster, node_name)
        ) as is_of_containers
    from (
        select
            *,
            if(source_metrics = [], null, is_of_containers(array_to_string(source_metrics, ', '))) as is_of_containers
        from period.signal_day
    ) as signal
),

lost as (
    -- The device itself had no data, so every signal is missing.
    select
        part.* similar to '^(cluster|signal|node_name|day)$',
        any_value(case
            when silent.known_day != part.day then 'not_exported'
            when of_containers.is_of_containers then 'container_series'
            when silent.is_together then 'exporter_down'
            else 'device_unseen'
        end) as reason,
        false as is_own,
        sum(part.unseen_seconds) as lost_seconds,
        any_value(if(
            silent.known_day = part.day,
            concat(
                'GPUs without data: ', silent.silent_count, ' of ', silent.device_count, ', all signals at once, for ', silent.unknown_seconds::bigint,
                ' s in total; last sample: ', if(silent.last_seen_at < part.day, silent.last_seen_at::date || ' ', ''),
                coalesce(strftime(silent.last_seen_at, '%H:%M:%S'), 'unknown'),
                '; hours without data: ' || nullif(array_to_string(silent.silent_hours, ', '), '')
            ),
            concat('no export of the cluster; its GPUs are those of ', silent.known_day)
        )) as evidence
    from part
    inner join silent
        using (cluster, node_name, day)
    left join of_containers
        using (cluster, node_name, day)
    where part.unseen_seconds > 0
    group by part.cluster, part.signal, part.node_name, part.day
    union all by name
    select
        * exclude (gpu_model, device_count, unknown_seconds),
        'any' as signal,
        true as is_own,
        unknown_seconds as lost_seconds
    from period.node_gap
    union all by name
    select
        cluster,
        'workload' as signal,
        node_name,
        day,
        cause as reason,
        true as is_own,
        sum(lacking_seconds) as lost_seconds,
        concat(
            'GPUs without a named pod all day: ', count(*), ', time × activity ', sum(active_seconds)::bigint, ' s; pods with accelerators '
            'on the node: ', coalesce(max(accelerator_pod_count)::varchar, 'unknown'), '; nodes of the cluster that name holders: ', max(named_node_count)
        ) as evidence
    from period.holder_day
    where cause != ''
    group by cluster, node_name, day, cause
    union all by name
    select
        columns('^(cluster|signal|node_name|day)$'),
        cause as reason,
        true as is_own,
        lacking_seconds as lost_seconds,
        concat('devices: ', device_count, '; ', case
            when left_out_count is not null
                then 'values left out: ' || left_out_count || ', kept: ' || sample_count
            when cause in ('partial', 'single_sample')
                then 'samples: ' || sample_count || ', in ' || device_seconds::bigint || ' s with data'
            when cause = 'driver'
                then 'driver ' || array_to_string(driver_versions, ', ')
            when cause = 'mig'
                then 'split into MIG instances; other signals: ' || sibling_count
            when cause = 'no_dcp'
                then 'other signals: ' || sibling_count || ', no profiling signal'
            when cause = 'virtual_gpu'
                then 'virtual: ' || array_to_string(gpu_models, ', ')
            when cause = 'not_on_model' and other_count = 0
                then 'by the data sheet of ' || array_to_string(gpu_models, ', ')
            when cause in ('not_in_exporter_config', 'not_on_model')
                then concat(
                    'other signals of ', exporter, ': ', sibling_count, '; GPUs of the model that have this one: ',
                    peer_count, ', of the cluster: ', other_count
                )
            when exporter = ''
                then 'their exporter is unknown'
            else concat('other signals of ', exporter, ': ', sibling_count, '; no GPU of the cluster has this one')
        end) as evidence
    from period.signal_day
    where cause != ''
),

-- Of several reasons, the one with the most missing time; for a signal that was never known, its own reason comes first.
likely as (
    select
        columns('^(cluster|signal|node_name|day)$'),
        arg_max({ 'reason': reason, 'evidence': evidence }, (lost_seconds, reason)) as longest,
        arg_max({ 'reason': reason, 'evidence': evidence }, (lost_seconds, reason)) filter (where is_own) as own
    from lost
    group by cluster, signal, node_name, day
),

explained as (
    select
        total.*,
        round(total.observed_device_seconds + total.unknown_device_seconds, 3) as expected_device_seconds,
        if(
            total.unknown_device_seconds <= 0.01 * expected_device_seconds,
            { 'reason': '', 'evidence': '' },
            coalesce(if(total.observed_device_seconds = 0, likely.own, null), likely.longest, { 'reason': 'partial', 'evidence': '' })
        ) as found
    from total
    left join likely
        using (cluster, signal, node_name, day)
),

refuted as (
    select
        cluster,
        'workload' as signal,
        'pods that are not holders: ' || array_to_string(list_sort(list_distinct(list(
            concat(namespace, '/', pod, if(evidence = 'scraped_address', ' (its address is scraped)', ' (requests no accelerator)'))
        ))), ', ') as refuted
    from facts.refuted_holder
    group by cluster
)

select
    explained.* similar to '^(cluster|signal|node_name|day)$',
    explained.observed_device_seconds / (explained.observed_device_seconds + explained.unknown_device_seconds) as coverage_ratio,
    explained.found.reason,
    concat_ws('; ', nullif(explained.found.evidence, ''), refuted.refuted) as evidence,
    coalesce(explained.source_metrics, '') as source_metrics,
    explained.* similar to '^((expected|observed)_(device|series)_count|(expected|observed|unknown)_device_seconds|dropped)$'
from explained
left join refuted
    using (cluster, signal)
