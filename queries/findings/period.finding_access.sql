-- Findings: containers on GPUs not allocated to them; GPUs allocated more than once (by two schedulers, or advertised in several ways).
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id
-- reads:  facts.device_day, facts.overallocation, facts.unallocated_use
-- params: since_at, until_at
-- A GPU may move to another node.
with place as (
    select
        columns('^(cluster|device_uuid|day)$'),
        arg_max(columns('^(node_name|gpu_model)$'), last_hour_at) as "\0"
    from facts.device_day
    group by all
),

summed as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$'),
        sum(overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp)) / 3600000 as hours,
        string_agg(distinct source, ', ' order by source) as source,
        list_sort(list_distinct(flatten(list(allocated_devices)))) as allocated_devices,
        date_trunc('hour', min(greatest(start_at, $since_at::timestamp))) as first_seen_at,
        max(least(end_at, $until_at::timestamp) - interval 1 millisecond)::date as day
    from facts.unallocated_use
    where start_at < $until_at and end_at > $since_at
    group by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container
),

allocated as (
    select
        * exclude (start_at, end_at),
        epoch_ms(least(end_at, $until_at::timestamp) - greatest(start_at, $since_at::timestamp)) / 3600000 as hours,
        greatest(start_at, $since_at::timestamp) as start_at,
        (least(end_at, $until_at::timestamp) - interval 1 millisecond)::date as day
    from facts.overallocation
    where start_at < $until_at and end_at > $since_at
)

select
    'GR107' as code,
    summed.* exclude (hours, source, allocated_devices, day),
    coalesce(place.node_name, '') as node_name,
    coalesce(place.gpu_model, '') as gpu_model,
    -- The size of an instance is unknown here.
    if(summed.gpu_instance_id = '', summed.hours, null) as gpu_hours,
    -- Medium, because the exporter's own mapping may be wrong; that needs a check too.
    'medium' as confidence,
    format(
        'reported here for {:,.1f} h; {} allocated {}', summed.hours, summed.source,
        array_to_string(summed.allocated_devices[:4], ', ')
    ) as evidence
from summed
asof left join place
    using (cluster, device_uuid, day)

union all by name

select
    'GR108' as code,
    allocated.cluster,
    coalesce(max(place.node_name), '') as node_name,
    allocated.device_uuid,
    allocated.gpu_instance_id,
    coalesce(max(place.gpu_model), '') as gpu_model,
    if(allocated.gpu_instance_id = '', sum(allocated.hours), null) as gpu_hours,
    'high' as confidence,
    format(
        'allocated up to {:.2f} times, for {:,.1f} h: {}', max(allocated.granted_ratio), sum(allocated.hours),
        string_agg(distinct allocated.grants, '; ' order by allocated.grants)
    ) as evidence,
    min(allocated.start_at) as first_seen_at
from allocated
asof left join place
    using (cluster, device_uuid, day)
group by allocated.cluster, allocated.device_uuid, allocated.gpu_instance_id
