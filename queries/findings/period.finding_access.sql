-- Findings: containers reported on GPUs that were not allocated to them.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id
-- reads:  facts.device_day, facts.unallocated_use
-- params: since_at, until_at
-- source: facts.unallocated_use
with place as (
    select
        cluster,
        device_uuid,
        arg_max(node_name, last_hour_at) as node_name,
        arg_max(gpu_model, last_hour_at) as gpu_model
    from facts.device_day
    group by cluster, device_uuid
),

summed as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$'),
        sum(overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp)) / 3600000 as gpu_hours,
        string_agg(distinct source, ', ' order by source) as source,
        list_sort(list_distinct(flatten(list(allocated_devices)))) as allocated_devices,
        date_trunc('hour', min(greatest(start_at, $since_at::timestamp))) as first_seen_at
    from facts.unallocated_use
    where start_at < $until_at and end_at > $since_at
    group by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container
)

select
    'GR107' as code,
    summed.* exclude (source, allocated_devices),
    coalesce(place.node_name, '') as node_name,
    coalesce(place.gpu_model, '') as gpu_model,
    -- The exporter's own mapping is wrong at times; that is worth a snapshot too.
    'medium' as confidence,
    format(
        'reported here for {:,.1f} h; {} allocated {}', summed.gpu_hours, summed.source,
        array_to_string(summed.allocated_devices[:4], ', ')
    ) as evidence
from summed
left join place
    using (cluster, device_uuid)
