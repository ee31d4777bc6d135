-- Findings: GPU-hours without work, such as allocated and idle, reserved and idle, used by an unknown holder, fragmented, unavailable.
--
-- The source is the ledger. Allocated time without activity data counts neither way. Where it is more than half of the allocated time
-- (figure_min_coverage), there is no finding. The pods of a workload are judged together. A workload of several pods is idle where its pods are idle
-- for workload_idle_ratio of their time; else only its pods that are idle on their own count. Labels appear and disappear a sampling step after their
-- pod, so a GPU with frequent changes of holders is active for minutes without a name. So 1 % of its time is ignored.
--
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, node_name, device_uuid, detail
-- reads:  facts.ownership, period.ledger, period.workload
-- params: figure_min_coverage_ratio, findings_gpu_hours, idle_ratio, workload_idle_ratio
-- source: period.ledger; certainty of holders: facts.ownership
with allocated as (
    select
        columns('^(cluster|namespace|pod|pod_uid|device_uuid|gpu_instance_id)$'),
        max(columns('^(node_name|gpu_model)$')),
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), 0) as idle_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_unmeasured'), 0) as unknown_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket in ('allocated_idle', 'effective', 'underutilized', 'active_unmeasured')), 0) as reported_gpu_hours,
        -- Sums of parts of GPUs differ in the last digits; limits include themselves.
        round(idle_gpu_hours - $idle_ratio * reported_gpu_hours, 9) >= 0 as is_device_idle,
        min(first_hour_at) filter (where bucket = 'allocated_idle') as first_seen_at
    from period.ledger
    where pod != '' and bucket != 'reserved_idle'
    group by cluster, namespace, pod, pod_uid, device_uuid, gpu_instance_id
),

holder as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        list(node_name) as node_names,
        list(gpu_model) as gpu_models,
        count(*) filter (where reported_gpu_hours > 0) as device_count,
        if(bool_or(gpu_instance_id = ''), 'GPU', 'GPU instance') as device,
        sum(columns('^(idle|reported)_gpu_hours$')),
        round(sum(idle_gpu_hours) - $idle_ratio * sum(reported_gpu_hours), 9) >= 0 as is_idle,
        count(*) filter (where idle_gpu_hours > 0 and is_device_idle) as idle_count,
        sum(idle_gpu_hours) filter (where is_device_idle) as idle_device_gpu_hours,
        min(first_seen_at) as first_seen_at,
        bool_or((cluster, namespace, pod, pod_uid) in (
            select (owner.cluster, owner.namespace, owner.pod, owner.pod_uid) from facts.ownership as owner
            where owner.certainty != 'certain'
        )) as is_unsure
    from allocated
    group by cluster, namespace, pod, pod_uid
    having sum(reported_gpu_hours) > 0 and sum(reported_gpu_hours) >= $figure_min_coverage_ratio * sum(reported_gpu_hours + unknown_gpu_hours)
),

-- A pod is idle, partially idle, or neither. If a workload is idle as a whole, all its idle hours count as such.
judged as (
    select
        holder.*,
        coalesce(workload.workload_kind, 'by name') as workload_kind,
        coalesce(workload.workload, workload_by_name(holder.pod)) as workload,
        count(*) over whole > 1
        and round(sum(holder.idle_gpu_hours) over whole - $workload_idle_ratio * sum(holder.reported_gpu_hours) over whole, 9) >= 0 as is_whole,
        count(*) over whole as pod_count,
        case
            when is_whole or holder.is_idle then 'GR101'
            when holder.idle_count between 1 and holder.device_count - 1 then 'GR102'
        end as code
    from holder
    left join period.workload as workload
        using (cluster, namespace, pod, pod_uid)
    window whole as (
        partition by
            holder.cluster,
            holder.namespace,
            coalesce(workload.workload_kind, 'by name'),
            coalesce(workload.workload, workload_by_name(holder.pod))
    )
),

idle as (
    select
        columns('^(code|cluster|namespace|workload_kind|workload)$'),
        only_one(min(pod), max(pod)) as pod,
        only_one(min(pod_uid), max(pod_uid)) as pod_uid,
        list_sort(list_distinct(flatten(list(columns('^(node_names|gpu_models)$'))))) as "\0",
        sum(if(code = 'GR101', idle_gpu_hours, idle_device_gpu_hours)) as gpu_hours,
        if(bool_or(is_unsure), 'medium', 'high') as confidence,
        min(first_seen_at) as first_seen_at,
        if(code = 'GR101', format(
            'idle for {:,.1f} of {:,.1f} GPU-hours ({:.0f} %)', sum(idle_gpu_hours), sum(reported_gpu_hours),
            100 * sum(idle_gpu_hours) / sum(reported_gpu_hours)
        ), format(
            'idle on {:,} of {}, for {:,.1f} GPU-hours; active on others', sum(idle_count), counted(sum(device_count), min(device)),
            sum(idle_device_gpu_hours)
        )) as idleness,
        concat(
            idleness,
            case
                when any_value(pod_count) > 1 then format(', in {:,} of {:,} pods', count(*) filter (where idle_gpu_hours > 0), any_value(pod_count))
                when code = 'GR101' then ' on ' || counted(sum(device_count), min(device))
            end,
            if(any_value(pod_count) > 1 and bool_or(is_whole), format(
                '; {:,} of them idle for {:.0f} % of their time or more', count(*) filter (where is_idle), 100 * $idle_ratio
            ), '')
        ) as evidence
    from judged
    where code is not null
    group by code, cluster, namespace, workload_kind, workload
)

select
    * exclude (idleness, node_names, gpu_models),
    if(len(node_names) <= 3, array_to_string(node_names, ', '), '') as node_name,
    array_to_string(gpu_models, ', ') as gpu_model
from idle
where round(gpu_hours, 9) >= $findings_gpu_hours
union all by name
select
    'GR103' as code,
    columns('^(cluster|namespace|pod|pod_uid)$'),
    string_agg(distinct node_name, ', ' order by node_name) as node_name,
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
    sum(gpu_hours) as gpu_hours,
    'high' as confidence,
    format(
        'reserved for {:,.1f} GPU-hours on {} without a container', sum(gpu_hours), counted(count(distinct device_uuid), 'GPU')
    ) as evidence,
    min(first_hour_at) as first_seen_at
from period.ledger
where bucket = 'reserved_idle'
group by cluster, namespace, pod, pod_uid
having round(sum(gpu_hours), 9) >= $findings_gpu_hours
union all by name
select
    'GR105' as code,
    columns('^(cluster|node_name|device_uuid)$'),
    max(gpu_model) as gpu_model,
    sum(gpu_hours) filter (where cause = 'nobody_named') as gpu_hours,
    'medium' as confidence,
    format(
        'active for {:,.1f} of {:,.1f} GPU-hours without an allocated pod', sum(gpu_hours) filter (where cause = 'nobody_named'), sum(gpu_hours)
    ) as evidence,
    min(first_hour_at) filter (where cause = 'nobody_named') as first_seen_at
from period.ledger
group by cluster, node_name, device_uuid
having round(sum(gpu_hours) filter (where cause = 'nobody_named'), 9) >= greatest($findings_gpu_hours, 0.01 * sum(gpu_hours))
union all by name
select
    case when bucket = 'unavailable' then 'GR604' when cause = 'unsliced' then 'GR601' else 'GR602' end as code,
    columns('^(cluster|node_name)$'),
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
    sum(gpu_hours) as gpu_hours,
    if(bucket = 'unavailable' or cause in ('unsliced', 'fragmented', 'larger_than_any_node'), 'high', 'medium') as confidence,
    format(
        if(bucket = 'unavailable', '{2} for {0:,.1f} GPU-hours{1}', '{0:,.1f} GPU-hours{1}: {2}'),
        -- GPUs without telemetry have no UUID, so their number is unknown.
        sum(gpu_hours), if(min(device_uuid) = '', '', ' on ' || counted(count(distinct device_uuid), 'GPU')), cause
    ) as evidence,
    min(first_hour_at) as first_seen_at,
    cause as detail
from period.ledger
where bucket in ('fragmented', 'unavailable')
group by cluster, node_name, bucket, cause
having round(sum(gpu_hours), 9) >= $findings_gpu_hours
