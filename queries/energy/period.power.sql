-- Energy of each holder on each of its GPUs or MIG instances, added over the window.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.power_day
-- params: figure_min_coverage_ratio
-- source: facts.power_hour
-- columns:
--   energy_joules        J in all: active, allocated idle, and idle; hours with unknown idle energy count as a whole
--   used_gpu_hours       allocated_gpu_hours x mean activity; null where activity is known for less than figure_min_coverage
--   use_known_gpu_hours  h of allocated_gpu_hours with known activity
-- Most holders have one row. Only the others have lists of names, because lists take much memory.
with several as (
    select columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$')
    from facts.power_day
    group by all
    having count(*) > 1 or bool_or(contains(method, ', '))
),

listed as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        array_to_string(list_sort(list_distinct(flatten(list(string_split(method, ', '))))), ', ') as method,
        array_to_string(list_sort(list_distinct(flatten(list(string_split(hours_method, ', '))))), ', ') as hours_method,
        array_to_string(list_sort(list_distinct(list(idle_source) filter (where idle_source is not null))), ', ') as idle_source
    from facts.power_day
    semi join several
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    group by all
)

select
    allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
    sum(columns('^(observed|measured|active|held|allocated|activity|equal)_.*(seconds|joules|unweighted|kepler)$')),
    sum(allocated.active_joules + allocated.allocated_idle_joules + coalesce(allocated.idle_joules, 0)) as energy_joules,
    sum(allocated.gpu_seconds) / 3600 as allocated_gpu_hours,
    sum(coalesce(allocated.use_known_gpu_seconds, if(allocated.used_gpu_seconds is null, 0, allocated.gpu_seconds))) / 3600 as use_known_gpu_hours,
    if(
        use_known_gpu_hours > 0 and use_known_gpu_hours >= $figure_min_coverage_ratio * allocated_gpu_hours,
        sum(allocated.used_gpu_seconds) / 3600 * allocated_gpu_hours / use_known_gpu_hours, null
    ) as used_gpu_hours,
    sum(allocated.idle_joules) as known_idle_joules,
    if(sum(allocated.idle_known_count) = sum(allocated.active_known_count), known_idle_joules, null) as idle_joules,
    sum(allocated.active_joules * share_error_ratio(allocated.method, allocated.equal_seconds, allocated.active_seconds)) as share_error_joules,
    if(count(allocated.corrected_joules) = count(allocated.active_joules), sum(allocated.corrected_joules), null) as corrected_joules,
    max(allocated.active_watts_max) as active_watts_max,
    sum(allocated.clamped_count)::bigint as clamped_count,
    sum(allocated.idle_watt_seconds) / sum(allocated.idle_watts_seconds) as idle_watts,
    coalesce(any_value(listed.idle_source), any_value(allocated.idle_source)) as idle_source,
    coalesce(any_value(listed.method), any_value(allocated.method)) as method,
    coalesce(any_value(listed.hours_method), any_value(allocated.hours_method), '') as hours_method,
    max(allocated.scope) as scope
from facts.power_day as allocated
left join listed
    using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
group by allocated.cluster, allocated.namespace, allocated.pod, allocated.pod_uid, allocated.container, allocated.device_uuid, allocated.gpu_instance_id
