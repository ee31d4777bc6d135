-- Findings: weak evidence, such as nodes without data, unnamed holders, implausible signals, effectiveness not measured.
--
-- grain:  code, cluster, namespace, pod, pod_uid, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.device_power_day, facts.ownership, facts.refuted_holder, period.capacity, period.ledger, period.signal_day
-- params: findings_gpu_hours, since_at, unseen_ratio, until_at
-- columns:
--   is_shared  whether other holders may have the same hours of the GPU
with capacity as (
    select
        columns('^(cluster|node_name)$'),
        string_agg(distinct gpu_model, ', ' order by gpu_model) filter (where gpu_model != '') as gpu_model,
        sum(capacity_seconds) / 3600 as capacity_gpu_hours,
        count(*) over (partition by cluster) as node_count
    from period.capacity
    group by cluster, node_name
),

of_containers as (
    select columns('^(cluster|node_name)$')
    from period.signal_day
    where source_metrics != []
    group by all
    having bool_and(is_of_containers(array_to_string(source_metrics, ', ')))
),

-- GPUs without an exporter have no model either.
unseen as (
    select
        columns('^(cluster|node_name|cause)$'),
        sum(gpu_hours) as gpu_hours,
        greatest(min(day)::timestamp, $since_at::timestamp) as first_seen_at
    from period.ledger
    anti join of_containers
        using (cluster, node_name)
    where
        bucket in ('unknown', 'allocated_unmeasured', 'free')
        and cause in ('unseen', 'not_exported', 'no_exporter', 'no_driver', 'device_unseen')
    group by cluster, node_name, cause
),

silent as (
    select
        *,
        count(*) over (partition by cluster, cause) as silent_count
    from unseen
    inner join capacity
        using (cluster, node_name)
    where round(gpu_hours, 9) >= $findings_gpu_hours and round(gpu_hours - $unseen_ratio * capacity_gpu_hours, 9) >= 0
),

-- Containers of a pod have the GPU at the same time.
unclear as (
    select
        *,
        max(end_at) over (
            partition by cluster, namespace, pod, pod_uid, device_uuid, gpu_instance_id
            order by start_at, end_at
            rows between unbounded preceding and 1 preceding
        ) as counted_until_at
    from facts.ownership
    where certainty = 'ambiguous' and start_at < $until_at and end_at > $since_at
),

ambiguous as (
    select
        columns('^(cluster|namespace|pod|pod_uid|device_uuid|gpu_instance_id)$'),
        sum(overlap_ms(greatest(start_at, counted_until_at), end_at, $since_at::timestamp, $until_at::timestamp)) / 3600000 as hours,
        string_agg(distinct sharing_evidence, '; ' order by sharing_evidence) as sharing_evidence,
        min(greatest(start_at, $since_at::timestamp)) as first_seen_at
    from unclear
    group by cluster, namespace, pod, pod_uid, device_uuid, gpu_instance_id
),

-- Hours of a UTC day that is partly in the window are unknown: at most its time in the window.
lacking as (
    select
        *,
        overlap_ms(day, day + interval 1 day, $since_at::timestamp, $until_at::timestamp) as window_ms,
        least(lacking_seconds, device_count * window_ms / 1000) as window_seconds,
        0.99 * window_seconds > lacking_seconds - device_count * (86400 - window_ms / 1000) as is_most
    from period.signal_day
),

-- A driver may rename the model within the window; a day without data may have none.
place as (
    select
        columns('^(cluster|device_uuid)$'),
        coalesce(arg_max(gpu_model, day) filter (where gpu_model != ''), '') as gpu_model
    from period.capacity
    group by all
),

disputed as (
    select
        power.cluster,
        power.device_uuid,
        place.gpu_model,
        sum(power.counter_joules) / nullif(sum(power.integral_joules), 0) as counter_ratio
    from facts.device_power_day as power
    inner join place
        using (cluster, device_uuid)
    group by all
    having
        sum(power.counter_seconds) >= 600
        and abs(sum(power.counter_joules) - sum(power.integral_joules))
        > 0.2 * greatest(sum(power.counter_joules), sum(power.integral_joules))
)

select
    'GR001' as code,
    cause as detail,
    cluster,
    if(count(*) = 1, any_value(node_name), '') as node_name,
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
    sum(gpu_hours) as gpu_hours,
    'high' as confidence,
    format(
        'no data for {:,.1f} of {:,.1f} GPU-hours ({:.0f} %)', sum(silent.gpu_hours), sum(capacity_gpu_hours),
        100 * sum(silent.gpu_hours) / sum(capacity_gpu_hours)
    ) || if(count(*) = 1, '', format(' on {:,} nodes', count(*))) as evidence,
    min(silent.first_seen_at) as first_seen_at
from silent
-- A cluster without an exporter is one finding; so is a cluster in which most nodes had no data.
group by cluster, cause, if(cause = 'unseen' and (silent_count < 3 or 2 * silent_count <= node_count), silent.node_name, '')
union all by name
select
    'GR002' as code,
    cause as detail,
    cluster,
    node_name,
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
    sum(gpu_hours) as gpu_hours,
    'medium' as confidence,
    format(
        '{:,.1f} GPU-hours on {} without a pod', sum(gpu_hours), counted(count(distinct device_uuid), 'GPU')
    ) || coalesce((
        select format('; labels in the cluster also name {} that cannot hold a GPU', counted(count(distinct refuted.namespace || '/' || refuted.pod), 'pod'))
        from facts.refuted_holder as refuted
        where refuted.cluster = ledger.cluster
        having count(*) > 0
    ), '') as evidence,
    min(first_hour_at) as first_seen_at
from period.ledger as ledger
where bucket = 'unknown' and cause in ('no_pod_labels', 'no_permission')
group by cluster, node_name, cause
having round(sum(gpu_hours), 9) >= $findings_gpu_hours
union all by name
select
    'GR003' as code,
    signal as detail,
    cluster,
    array_to_string(list_sort(list_distinct(flatten(list(gpu_models)))), ', ') as gpu_model,
    sum(window_seconds) / 3600 as gpu_hours,
    'high' as confidence,
    format(
        '{} of {} dropped{}: {}; no data for {}{:,.1f} GPU-hours on {} or instance{}',
        counted(sum(left_out_count), 'value'),
        array_to_string(list_sort(list_distinct(flatten(list(source_metrics)))), ', '),
        if(min(window_ms) < 86400000, ' on whole UTC days', ''),
        string_agg(distinct cause, ', ' order by cause), if(bool_or(is_most), 'at most ', ''), sum(window_seconds) / 3600,
        counted(len(list_distinct(flatten(list(left_out_devices)))), 'GPU'),
        if(len(list_distinct(flatten(list(left_out_devices)))) = 1, '', 's')
    ) as evidence,
    greatest(min(day)::timestamp, $since_at::timestamp) as first_seen_at
from lacking
where cause in ('dead', 'out_of_range', 'over_total', 'ambiguous_unit')
group by cluster, signal
union all by name
select
    'GR004' as code,
    gpu_model as detail,
    columns('^(cluster|gpu_model)$'),
    'medium' as confidence,
    'the energy counter ' || concat_ws('; ', format(
        'grew by {:.2f}{} times the energy of the measured power on {}', min(counter_ratio),
        if(count(counter_ratio) = 1, '', format(' to {:.2f}', max(counter_ratio))), counted(count(counter_ratio), 'GPU')
    ), if(bool_or(counter_ratio is null), format(
        'grew where the measured power was 0 on {}', counted(count(*) - count(counter_ratio), 'GPU')
    ), null)) as evidence,
    $since_at::timestamp as first_seen_at
from disputed
group by cluster, gpu_model
union all by name
select
    'GR005' as code,
    gpu_model as detail,
    columns('^(cluster|gpu_model)$'),
    sum(gpu_hours) as gpu_hours,
    'high' as confidence,
    format(
        'active for {:,.1f} GPU-hours on {} without data for SM activity', sum(gpu_hours), counted(count(distinct device_uuid), 'GPU')
    ) as evidence,
    min(first_hour_at) as first_seen_at
from period.ledger
where bucket = 'active_unmeasured'
group by cluster, gpu_model
having round(sum(gpu_hours), 9) >= $findings_gpu_hours
union all by name
select
    'GR106' as code,
    * exclude (hours, sharing_evidence, first_seen_at),
    -- The size of an instance is unknown here.
    if(gpu_instance_id = '', hours, null) as gpu_hours,
    'high' as confidence,
    format('{:,.1f} h: {}', hours, sharing_evidence) as evidence,
    first_seen_at,
    true as is_shared
from ambiguous
qualify round(sum(hours) over (partition by cluster, namespace, pod, pod_uid), 9) >= $findings_gpu_hours
