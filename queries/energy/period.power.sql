-- Energy of each holder on each of its GPUs or MIG instances, added over the window.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.power_day
-- params:
-- source: facts.power_hour
-- columns:
--   used_gpu_hours    allocated_gpu_hours x activity of what was held
with made as (
    select
        *,
        unnest(string_split(method, ', ')) as each_method
    from facts.power_day
),

method as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        string_agg(distinct each_method, ', ' order by each_method) as method
    from made
    group by all
)

select
    held.cluster,
    held.namespace,
    held.pod,
    held.pod_uid,
    held.container,
    held.device_uuid,
    held.gpu_instance_id,
    sum(columns('^(observed|measured|active|held|activity|equal)_.*(seconds|joules|unweighted|kepler)$')),
    sum(held.gpu_seconds) / 3600 as allocated_gpu_hours,
    sum(held.used_gpu_seconds) / 3600 as used_gpu_hours,
    if(sum(held.idle_known_count) = sum(held.active_known_count), sum(held.idle_joules), null) as idle_joules,
    max(held.active_watts_max) as active_watts_max,
    sum(held.clamped_count)::bigint as clamped_count,
    sum(held.idle_watt_seconds) / sum(held.idle_watts_seconds) as idle_watts,
    string_agg(distinct held.idle_source, ', ' order by held.idle_source) as idle_source,
    any_value(method.method) as method,
    concat_ws(
        ', ',
        if(bool_or(contains(held.hours_method, 'equal_share')), 'equal_share', null),
        if(bool_or(contains(held.hours_method, 'exclusive')), 'exclusive', null),
        if(bool_or(contains(held.hours_method, 'granted_share')), 'granted_share', null)
    ) as hours_method,
    max(held.scope) as scope
from facts.power_day as held
inner join method
    using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
group by held.cluster, held.namespace, held.pod, held.pod_uid, held.container, held.device_uuid, held.gpu_instance_id
