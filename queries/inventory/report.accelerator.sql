-- Accelerators of each container: make, model, memory and duty cycle, in cAdvisor's shape.
--
-- Means are weighted by time over the window. The holder's own measurements come before those of the whole device; the scope columns show the scope.
-- Never add rows of scope device over containers. On a MIG instance the duty cycle is 100 x its engine's activity.
--
-- grain:  cluster, namespace, pod, pod_uid, container, id, gpu_instance_id
-- reads:  facts.device_signal, facts.pod_hour, period.sum
-- params: since_at, until_at, figure_min_coverage_ratio
-- source: period.sum, facts.pod_hour; fields and units of cAdvisor's AcceleratorStats (0.28 to 0.46)
-- columns: cluster, namespace, pod, pod_uid, container, make, model, id, gpu_instance_id, memory_total_bytes, memory_used_bytes, memory_used_bytes_max,
--          duty_cycle_percent, observed_seconds, memory_total_scope, memory_scope, duty_cycle_scope, sharing_mode, memory_total_source_metric,
--          memory_used_source_metric, duty_cycle_source_metric, node_name, gpu_device, memory_used_seen_seconds, duty_cycle_seen_seconds, unknown_reasons
--   memory_total_bytes          memory of the device, the instance, or the holder's limit, by memory_total_scope
--   memory_used_bytes           mean memory in use over the window
--   observed_seconds            s in which the device had data while allocated
with own as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        bool_or(not is_mapped) as is_unmapped,
        min(nullif(gpu_util_scope, '')) as duty_scope,
        string_agg(distinct nullif(gpu_util_metric, ''), ', ' order by nullif(gpu_util_metric, '')) as duty_metric,
        sum(gpu_util_seen_seconds) filter (where is_mapped) as duty_seen_seconds,
        sum(gpu_util_ratio_seconds) filter (where is_mapped) as duty_ratio_seconds,
        min(nullif(fb_used_scope, '')) as used_scope,
        string_agg(distinct nullif(fb_used_metric, ''), ', ' order by nullif(fb_used_metric, '')) as used_metric,
        sum(fb_used_seen_seconds) filter (where is_mapped) as used_seen_seconds,
        sum(fb_used_byte_seconds) filter (where is_mapped) as used_byte_seconds,
        max(fb_used_bytes_max) filter (where is_mapped) as used_bytes_max,
        min(nullif(fb_total_scope, '')) as total_scope,
        string_agg(distinct nullif(fb_total_metric, ''), ', ' order by nullif(fb_total_metric, '')) as total_metric,
        max(fb_total_bytes_max) as total_bytes_max
    from facts.pod_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by all
),

origin as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        string_agg(distinct source_metric, ', ' order by source_metric) filter (where signal = 'gpu_util_ratio') as util_metric,
        string_agg(distinct source_metric, ', ' order by source_metric) filter (where signal = 'gr_engine_active_ratio') as engine_metric,
        string_agg(distinct source_metric, ', ' order by source_metric) filter (where signal = 'fb_used_bytes') as used_metric,
        coalesce(
            string_agg(distinct source_metric, ', ' order by source_metric) filter (where signal = 'fb_total_bytes'),
            string_agg(distinct source_metric, ', ' order by source_metric)
            filter (where signal in ('fb_used_bytes', 'fb_free_bytes', 'fb_reserved_bytes'))
        ) as total_metric
    from facts.device_signal
    where sample_count > 0 and day >= $since_at::date and day < $until_at
    group by all
),

chosen as (
    select
        allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|make|gpu_model|node_name|gpu_device|sharing_mode|observed_seconds)$',
        coalesce(own.is_unmapped, false) as is_unmapped,
        if(allocated.gpu_instance_id = '', 'device', 'instance') as device_scope,
        coalesce(own.duty_scope, device_scope) as duty_scope,
        unnest(case
            when own.duty_scope is not null
                then struct_pack(duty_seen_seconds := own.duty_seen_seconds, duty_ratio_seconds := own.duty_ratio_seconds, duty_metric := own.duty_metric)
            when allocated.gpu_instance_id = '' then row(allocated.gpu_util_seen_seconds, allocated.gpu_util_ratio_seconds, origin.util_metric)
            else row(allocated.gr_engine_active_seen_seconds, allocated.gr_engine_active_ratio_seconds, origin.engine_metric)
        end),
        allocated.gpu_instance_id != '' and allocated.gpu_util_seen_seconds is not null as is_duty_of_board,
        coalesce(own.used_scope, device_scope) as used_scope,
        if(own.used_scope is null, allocated.fb_used_seen_seconds, own.used_seen_seconds) as used_seen_seconds,
        if(own.used_scope is null, allocated.fb_used_byte_seconds, own.used_byte_seconds) as used_byte_seconds,
        if(own.used_scope is null, allocated.fb_used_bytes_max, own.used_bytes_max) as used_bytes_max,
        if(own.used_scope is null, origin.used_metric, own.used_metric) as used_metric,
        coalesce(own.total_scope, device_scope) as total_scope,
        if(own.total_scope is null, allocated.fb_total_bytes_max, own.total_bytes_max) as total_bytes_max,
        if(own.total_scope is null, origin.total_metric, own.total_metric) as total_metric
    from period.sum as allocated
    left join own
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    left join origin
        using (cluster, device_uuid, gpu_instance_id)
    where allocated.subject = 'container_device'
),

judged as (
    select
        *,
        if(total_bytes_max is null, 'not_collected', null) as total_reason,
        case
            when coalesce(used_seen_seconds, 0) >= $figure_min_coverage_ratio * observed_seconds and used_seen_seconds > 0 then null
            when used_scope = 'pod' and is_unmapped then 'pods_not_mapped'
            when used_seen_seconds is null then 'not_collected'
            else 'low_coverage'
        end as used_reason,
        case
            when coalesce(duty_seen_seconds, 0) >= $figure_min_coverage_ratio * observed_seconds and duty_seen_seconds > 0 then null
            when duty_scope = 'pod' and is_unmapped then 'pods_not_mapped'
            when duty_seen_seconds is null and is_duty_of_board then 'board_scope'
            when duty_seen_seconds is null then 'not_collected'
            else 'low_coverage'
        end as duty_reason
    from chosen
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|make)$'),
    gpu_model as model,
    device_uuid as id,
    gpu_instance_id,
    round(total_bytes_max)::bigint as memory_total_bytes,
    if(used_reason is null, round(used_byte_seconds / used_seen_seconds)::bigint, null) as memory_used_bytes,
    if(used_reason is null, round(used_bytes_max)::bigint, null) as memory_used_bytes_max,
    if(duty_reason is null, 100 * duty_ratio_seconds / duty_seen_seconds, null) as duty_cycle_percent,
    observed_seconds,
    total_scope as memory_total_scope,
    used_scope as memory_scope,
    duty_scope as duty_cycle_scope,
    sharing_mode,
    coalesce(total_metric, '') as memory_total_source_metric,
    coalesce(used_metric, '') as memory_used_source_metric,
    coalesce(duty_metric, '') as duty_cycle_source_metric,
    node_name,
    gpu_device,
    coalesce(used_seen_seconds, 0) as memory_used_seen_seconds,
    coalesce(duty_seen_seconds, 0) as duty_cycle_seen_seconds,
    unknown_reasons([
        ('memory_total_bytes', total_reason),
        ('memory_used_bytes', used_reason),
        ('memory_used_bytes_max', used_reason),
        ('duty_cycle_percent', duty_reason)
    ]) as unknown_reasons
from judged
