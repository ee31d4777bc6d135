-- Source metric of each signal of each device over the window, and values left out of signals, also for containers.
--
-- Several metrics (an upgraded exporter, two exporters) are listed, sorted. Values left out for a container are those of its devices on the days of
-- its allocation. On a MIG instance they are the instance's, and the board's for signals without instance values. Containers have rows only where
-- values were left out.
--
-- grain:  subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.container_day, facts.device_signal
-- parts:  2000000 rows of facts.device_signal by cluster
-- params: since_at, until_at
-- columns:
--   source_metrics  signal → its source metric; several are listed; null for a container
with reported as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day|signal)$'),
        if(sample_count > 0, source_metric, '') as metric,
        coalesce(if(cardinality(dropped) > 0, list_sort([
            { 'fewer': -entry.value, 'reason': entry.key }
            for entry in map_entries(dropped) if entry.key not in ('copy', 'duplicate', 'coarser_unit')
        ])[1].reason, null), '') as left_out
    from facts.device_signal
    where day < $until_at and day + interval 1 day > $since_at
),

-- Numbers compare faster than three names.
signal_metric as materialized (
    select
        *,
        row_number() over () as metric_number
    from (
        select distinct columns('^(signal|metric|left_out)$')
        from reported
    ) as each_metric
),

instance as (
    select distinct columns('^(cluster|device_uuid|gpu_instance_id|day)$')
    from facts.container_day
    where gpu_instance_id != ''
),

-- Signals that only the board has, for holders of its instances.
of_board as (
    select
        instance.*,
        reported.signal,
        reported.metric,
        reported.left_out
    from instance
    inner join reported
        using (cluster, device_uuid, day)
    anti join reported as own
        on
            instance.cluster = own.cluster
            and instance.device_uuid = own.device_uuid
            and instance.gpu_instance_id = own.gpu_instance_id
            and instance.day = own.day
            and reported.signal = own.signal
    where reported.gpu_instance_id = ''
),

each_signal as not materialized (
    select
        *,
        true as is_own
    from reported
    union all by name
    select
        *,
        false as is_own
    from of_board
),

-- A sum needs a tenth of the memory of a list.
reading as materialized (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day|is_own)$'),
        sum(hash(metric_number)) as set_hash
    from each_signal
    inner join signal_metric
        using (signal, metric, left_out)
    group by all
),

-- Most rows have the same few sets of metrics: each gets a number, and each set of sets is computed once.
metric_set as materialized (
    select
        example.set_hash,
        list(signal_metric.metric_number) as metrics,
        row_number() over () as number,
        bool_or(signal_metric.left_out != '') as has_left_out
    from (
        select distinct on (set_hash) *
        from reading
    ) as example
    inner join each_signal
        using (cluster, device_uuid, gpu_instance_id, day, is_own)
    inner join signal_metric
        using (signal, metric, left_out)
    group by example.set_hash
),

numbered as (
    select
        reading.* exclude (set_hash),
        metric_set.number,
        metric_set.has_left_out
    from reading
    inner join metric_set
        using (set_hash)
),

of_device as (
    select
        'container_device' as subject,
        allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
        list_sort(list_distinct(list(numbered.number))) as sets
    from facts.container_day as allocated
    inner join numbered
        using (cluster, device_uuid, gpu_instance_id, day)
    where numbered.has_left_out
    group by all
    union all by name
    select
        'device' as subject,
        numbered.cluster,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as container,
        numbered.device_uuid,
        numbered.gpu_instance_id,
        list_sort(list_distinct(list(numbered.number))) as sets
    from numbered
    where numbered.is_own
    group by all
),

subject as (
    from of_device
    union all by name
    select
        'container' as subject,
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        '' as device_uuid,
        '' as gpu_instance_id,
        list_sort(list_distinct(flatten(list(sets)))) as sets
    from of_device
    where subject = 'container_device'
    group by all
),

entry as (
    select
        each_set.sets,
        signal_metric.*
    from (
        select
            each_sets.sets,
            unnest(metric_set.metrics) as metric_number
        from (
            select
                sets,
                unnest(sets) as number
            from (select distinct sets from subject) as each_number
        ) as each_sets
        inner join metric_set
            using (number)
    ) as each_set
    inner join signal_metric
        using (metric_number)
),

listed as (
    select
        sets,
        signal,
        array_to_string(
            list_sort(list_distinct(flatten(list(string_split(metric, ', ')) filter (where metric != '')))), ', '
        ) as metric,
        min(nullif(left_out, '')) as left_out
    from entry
    group by sets, signal
),

mapped as (
    select
        sets,
        map_from_entries(
            coalesce(list({ 'signal': signal, 'metric': metric } order by signal) filter (where metric != ''), [])
        ) as source_metrics,
        map_from_entries(
            coalesce(list({ 'signal': signal, 'left_out': left_out } order by signal) filter (where left_out is not null), [])
        ) as left_out
    from listed
    group by sets
)

select
    subject.* exclude (sets),
    if(subject.subject = 'device', mapped.source_metrics, null) as source_metrics,
    mapped.left_out
from subject
left join mapped on subject.sets = mapped.sets
