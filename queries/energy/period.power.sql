-- Energy of each holder on each of its GPUs or MIG instances, added over the window.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.power_day
-- params:
-- source: facts.power_hour
-- columns:
--   observed_seconds  s in which the GPU was seen while held
--   measured_seconds  s of them whose energy is known; null where none is
--   idle_joules       J, its part of the idle baseline; null where the baseline is unknown at some time
--   idle_watts        the whole GPU's power at idle, mean over the time held
--   idle_source       where that comes from; several are listed
--   method            how the energy was shared; several are listed
--   allocated_gpu_hours  h of whole GPUs held, shared as hours_method says
--   used_gpu_hours    allocated_gpu_hours x activity of what was held
--   hours_method      how idle_joules and hours are shared out: exclusive, granted_share, equal_share; several are listed
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
