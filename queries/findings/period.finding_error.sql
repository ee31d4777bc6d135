-- Findings: XID errors of GPUs, by the class of their code; errors of their memory.
--
-- Holders are those at the first observation of each error, or up to one minute before. The work lost by an error is unknown.
--
-- grain:  code, cluster, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.device_day, facts.memory_error, facts.ownership, facts.xid_event, period.holder_day
-- params: since_at, until_at, xid_classes
-- source: facts.xid_event, facts.memory_error; classes: queries/catalog/xid.csv, after NVIDIA's XID catalog
with class as (
    select
        entry.code::integer as xid_code,
        entry.class,
        entry.severity,
        entry.severity = 'info' and entry.immediate_action = '' as is_only_reported,
        entry.name,
        entry.meaning
    from (
        select unnest(from_json(
            $xid_classes::json, '[{"code": "VARCHAR", "class": "VARCHAR", "severity": "VARCHAR", "immediate_action": "VARCHAR", "name": "VARCHAR", "meaning": "VARCHAR"}]'
        )) as entry
    ) as listed
),

event as (
    select
        xid_event.* exclude (source_signal),
        ownership.namespace || '/' || ownership.pod as holder
    from facts.xid_event
    left join facts.ownership
        on
            xid_event.cluster = ownership.cluster
            and xid_event.device_uuid = ownership.device_uuid
            and xid_event.seen_at >= ownership.start_at
            and xid_event.seen_at < ownership.end_at + interval 1 minute
    where xid_event.seen_at >= $since_at and xid_event.seen_at < $until_at
),

counted as (
    select
        * exclude (holder) replace (max(event_count) as event_count),
        list(distinct holder) filter (where holder is not null) as holders
    from event
    group by all
),

summed as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|xid_code)$'),
        sum(event_count)::bigint as event_count,
        min(seen_at) as first_seen_at,
        list_sort(list_distinct(flatten(list(holders) filter (where holders is not null)))) as holders
    from counted
    group by all
),

-- Counts stay after an error, so its time is the day's first sample with them.
memory as (
    select
        cluster,
        device_uuid,
        min(seen_at) as first_seen_at,
        coalesce(max(row_remap_failure_count), 0) > 0 as is_beyond_repair,
        max(remapped_row_uncorrectable_count)::bigint as row_count,
        max(ecc_uncorrectable_count)::bigint as error_count
    from facts.memory_error
    where seen_at >= date_trunc('day', $since_at::timestamp) and seen_at < $until_at
    group by cluster, device_uuid
),

device as (
    select
        columns('^(cluster|device_uuid)$'),
        arg_max(columns('^(node_name|gpu_model)$'), last_hour_at) as "\0"
    from facts.device_day
    group by all
)

select
    case
        when class.class = 'application' then 'GR402'
        when class.class is null or class.class = 'driver' or class.is_only_reported then 'GR403'
        else 'GR401'
    end as code,
    summed.xid_code::varchar as detail,
    summed.* exclude (xid_code, event_count, holders),
    coalesce(device.node_name, '') as node_name,
    coalesce(device.gpu_model, '') as gpu_model,
    null::double as gpu_hours,
    if(class.class is null, 'low', 'high') as confidence,
    concat(
        'XID ', summed.xid_code, ' (', coalesce(class.name || '; ' || class.class || ': ' || class.meaning, 'not in the catalog'), '), at least ',
        if(summed.event_count = 1, 'once', summed.event_count || ' times'),
        coalesce('; allocated to ' || nullif(array_to_string(summed.holders[:3], ', '), ''), if(holder.cause != '', '; allocation unknown', '; allocated to no pod')),
        if(len(summed.holders) > 3, ' and ' || (len(summed.holders) - 3) || ' more', '')
    ) as evidence,
    coalesce(class.severity, 'info') as severity
from summed
left join class on summed.xid_code = class.xid_code
left join device
    using (cluster, device_uuid)
left join period.holder_day as holder
    on summed.cluster = holder.cluster and summed.device_uuid = holder.device_uuid and summed.first_seen_at::date = holder.day
union all by name
select
    'GR404' as code,
    memory.* exclude (is_beyond_repair, row_count, error_count),
    coalesce(device.node_name, '') as node_name,
    coalesce(device.gpu_model, '') as gpu_model,
    null::double as gpu_hours,
    'high' as confidence,
    concat_ws(
        '; ',
        if(memory.is_beyond_repair, 'a row of memory could not be remapped', null),
        'rows remapped for uncorrectable errors: ' || nullif(memory.row_count, 0),
        'uncorrectable errors counted by ECC: ' || nullif(memory.error_count, 0)
    ) as evidence,
    if(memory.is_beyond_repair, 'critical', 'warning') as severity
from memory
left join device
    using (cluster, device_uuid)
