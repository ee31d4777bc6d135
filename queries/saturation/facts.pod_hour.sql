-- Measurements of each holder itself per hour, not of the device: per pod, or per container.
--
-- dcgm-exporter's virtual-GPU mode (dcgm-exporter 594) measures utilization and memory of a pod's processes and repeats them on each container of the
-- pod. HAMi measures each container. Where both exist, the container's values count. Copies of one sample (virtual GPUs, replicas) are one value, the
-- largest. A holder without such a series has no row.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.pod_series, day.pod_sum, facts.device_hour
-- source: series of scope pod: DCGM_FI_DEV_GPU_UTIL and DCGM_FI_DEV_FB_USED with a pod beside a series without, hami_*
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at, gpu_util_scope, gpu_util_metric,
--          gpu_util_seen_seconds, gpu_util_ratio_seconds, gpu_util_ratio_max, fb_used_scope, fb_used_metric, fb_used_seen_seconds,
--          fb_used_byte_seconds, fb_used_bytes_max, fb_total_scope, fb_total_metric, fb_total_bytes_max, is_mapped
--   fb_total_bytes_max      largest memory limit
with line_hour as (
    select
        columns('^(line_number|hour_start_at)$'),
        sum(columns('^(seen|value)_seconds$')),
        max(value_max) as value_max
    from day.pod_sum
    group by line_number, hour_start_at
),

named as (
    select
        * exclude (start_at, end_at, series_id, metric, is_alone),
        string_agg(distinct metric, ', ' order by metric) as metric
    from day.pod_series
    group by all
),

hour as (
    select
        named.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
        line_hour.hour_start_at,
        coalesce(any_value(scope) filter (where signal = 'gpu_util_ratio'), '') as gpu_util_scope,
        coalesce(any_value(metric) filter (where signal = 'gpu_util_ratio'), '') as gpu_util_metric,
        sum(seen_seconds) filter (where signal = 'gpu_util_ratio') as gpu_util_seen_seconds,
        sum(value_seconds) filter (where signal = 'gpu_util_ratio') as gpu_util_ratio_seconds,
        max(value_max) filter (where signal = 'gpu_util_ratio') as gpu_util_ratio_max,
        coalesce(any_value(scope) filter (where signal = 'fb_used_bytes'), '') as fb_used_scope,
        coalesce(any_value(metric) filter (where signal = 'fb_used_bytes'), '') as fb_used_metric,
        sum(seen_seconds) filter (where signal = 'fb_used_bytes') as fb_used_seen_seconds,
        sum(value_seconds) filter (where signal = 'fb_used_bytes') as fb_used_byte_seconds,
        max(value_max) filter (where signal = 'fb_used_bytes') as fb_used_bytes_max,
        coalesce(any_value(scope) filter (where signal = 'fb_total_bytes'), '') as fb_total_scope,
        coalesce(any_value(metric) filter (where signal = 'fb_total_bytes'), '') as fb_total_metric,
        max(value_max) filter (where signal = 'fb_total_bytes') as fb_total_bytes_max
    from line_hour
    inner join named on line_hour.line_number = named.line_number
    group by all
)

select
    hour.*,
    -- Activity of 1 % or more would not be rounded to 0; a value of any pod shows that the mapping works.
    coalesce(device_hour.gpu_util_ratio_seconds < 0.01 * device_hour.gpu_util_seen_seconds, true)
    and coalesce(device_hour.gr_engine_active_ratio_seconds < 0.01 * device_hour.gr_engine_active_seen_seconds, true)
    or max(greatest(hour.gpu_util_ratio_max, hour.fb_used_bytes_max)) over (
        partition by hour.cluster, hour.device_uuid, hour.gpu_instance_id, hour.hour_start_at
    ) > 0
    or 'container' in (hour.gpu_util_scope, hour.fb_used_scope) as is_mapped
from hour
left join facts.device_hour
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
