-- Source metric of each signal over the window, for every device, container on a device, and container.
--
-- A container's are those of its devices on the days on which it held them; on a MIG instance its own, and the board's for signals
-- that the instance has not. Several metrics (an exporter that was upgraded, two exporters) are listed, sorted.
--
-- grain:  subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.container_day, facts.device_signal
-- params: since_at, until_at
-- source: facts.device_signal
-- columns: subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, source_metrics, left_out
--   left_out  signal → for what most of its values were left out, copies aside
with told as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        signal,
        if(sample_count > 0, source_metric, '') as source_metric,
        list_sort([
            { 'fewer': -entry.value, 'reason': entry.key }
            for entry in map_entries(dropped) if entry.key not in ('copy', 'duplicate')
        ])[1].reason as left_out
    from facts.device_signal
    where day < $until_at and day + interval 1 day > $since_at
),

holder as (
    select distinct
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        device_uuid,
        gpu_instance_id,
        day
    from facts.container_day
),

instance as (
    select distinct
        cluster,
        device_uuid,
        gpu_instance_id,
        day
    from holder
    where gpu_instance_id != ''
),

-- What is the board's alone, for those who hold an instance of it.
of_board as (
    select
        instance.*,
        told.signal,
        told.source_metric,
        told.left_out
    from instance
    inner join told
        using (cluster, device_uuid, day)
    anti join told as own
        on
            instance.cluster = own.cluster
            and instance.device_uuid = own.device_uuid
            and instance.gpu_instance_id = own.gpu_instance_id
            and instance.day = own.day
            and told.signal = own.signal
    where told.gpu_instance_id = ''
),

own as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        list({ 'signal': signal, 'metric': source_metric, 'left_out': left_out } order by signal) as metrics
    from told
    group by cluster, device_uuid, gpu_instance_id, day
),

from_board as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        list({ 'signal': signal, 'metric': source_metric, 'left_out': left_out } order by signal) as metrics
    from of_board
    group by cluster, device_uuid, gpu_instance_id, day
),

held as (
    select
        holder.* exclude (day),
        list_concat(coalesce(own.metrics, []), coalesce(from_board.metrics, [])) as metrics
    from holder
    left join own
        using (cluster, device_uuid, gpu_instance_id, day)
    left join from_board
        using (cluster, device_uuid, gpu_instance_id, day)
),

reading as (
    select
        'device' as subject,
        cluster,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as container,
        device_uuid,
        gpu_instance_id,
        metrics
    from own
    union all by name
    select
        'container_device' as subject,
        *
    from held
    union all by name
    select
        'container' as subject,
        * replace ('' as device_uuid, '' as gpu_instance_id)
    from held
),

-- Nearly all have the same few sets of metrics: each set of sets is worked out once.
subject as (
    select
        * exclude (metrics),
        list(distinct metrics order by metrics) as sets
    from reading
    group by all
),

entry as (
    select
        sets,
        unnest(flatten(sets), recursive := true)
    from (select distinct subject.sets from subject) as each_set
),

listed as (
    select
        sets,
        signal,
        array_to_string(
            list_sort(list_distinct(flatten(list(string_split(metric, ', ')) filter (where metric != '')))), ', '
        ) as metric,
        min(left_out) as left_out
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
    coalesce(mapped.source_metrics, map_from_entries([])) as source_metrics,
    mapped.left_out
from subject
left join mapped on subject.sets = mapped.sets
