-- Measurements of each holder itself per hour, not of the device: per pod, or per container.
--
-- dcgm-exporter's virtual-GPU mode (dcgm-exporter 594) gives utilization and memory of a pod's processes and repeats them on each
-- of the pod's containers; HAMi gives a container's. Where both are there the container's serve. Copies of one instant (virtual
-- GPUs, replicas) are one value, the largest. A holder without such a series has no row.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  facts.device_hour, facts.ownership, lake.sample, lake.series
-- source: series of scope pod: DCGM_FI_DEV_GPU_UTIL and DCGM_FI_DEV_FB_USED with a pod beside a series without, hami_*
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at, gpu_util_scope, gpu_util_metric,
--          gpu_util_seen_seconds, gpu_util_ratio_seconds, gpu_util_ratio_max, fb_used_scope, fb_used_metric, fb_used_seen_seconds,
--          fb_used_byte_seconds, fb_used_bytes_max, fb_total_scope, fb_total_metric, fb_total_bytes_max, is_mapped
--   fb_total_bytes_max      largest memory limit
with measured as (
    select
        * exclude (scope),
        if(metric ilike 'dcgm%' or container = '', 'pod', 'container') as scope
    from lake.series
    where
        scope = 'pod' and device_uuid != '' and pod != ''
        and signal in ('gpu_util_ratio', 'fb_used_bytes', 'fb_total_bytes')
),

-- The holder that a series means: the one of its name at that time, for not every series carries the pod's uid.
holder as (
    select
        ownership.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|start_at|end_at)$',
        measured.* similar to '^(series_id|signal|metric|scope)$'
    from facts.ownership
    inner join measured
        using (cluster, device_uuid, gpu_instance_id, namespace, pod)
    where
        (measured.pod_uid in ('', ownership.pod_uid) or ownership.pod_uid = '')
        and measured.container in ('', ownership.container)
),

-- One line of time per holder and signal: the container's own series before the pod's.
line as (
    select
        *,
        dense_rank() over (
            order by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
        ) as line_number,
        count(distinct series_id) over (
            partition by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
        ) = 1 as is_alone
    from holder
    qualify scope = min(scope) over (
        partition by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
    )
),

sampled as (
    select
        line.line_number,
        line.is_alone,
        sample.value,
        greatest(epoch_ms(sample.seen_at), epoch_ms(line.start_at)) as start_ms,
        least(
            epoch_ms(sample.seen_at) + (1000 * sample.held_seconds)::bigint,
            epoch_ms(line.end_at)
        ) as end_ms
    from lake.sample
    inner join line
        using (cluster, series_id)
    where
        epoch_ms(sample.seen_at) < epoch_ms(line.end_at)
        and epoch_ms(sample.seen_at) + 1000 * sample.held_seconds > epoch_ms(line.start_at)
),

-- A series does not overlap itself. Of copies each reaches to the next; of those of one instant the last, largest one counts.
step as (
    select
        * exclude (is_alone),
        end_ms - start_ms as held_ms
    from sampled
    where is_alone
    union all by name
    select
        * exclude (is_alone),
        least(end_ms, lead(start_ms, 1, end_ms) over (partition by line_number order by start_ms, value, end_ms)) - start_ms as held_ms
    from sampled
    where not is_alone
),

line_hour as (
    select
        line_number,
        date_trunc('hour', make_timestamp_ms(start_ms)) as hour_start_at,
        sum(held_ms) / 1000 as seen_seconds,
        sum(value * held_ms) / 1000 as value_seconds,
        max(value) as value_max
    from step
    group by all
),

named as (
    select
        * exclude (start_at, end_at, series_id, metric, is_alone),
        string_agg(distinct metric, ', ' order by metric) as metric
    from line
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
    -- One of a hundred seconds of work is more than rounding hides; a value of any pod shows that the mapping works.
    coalesce(device_hour.gpu_util_ratio_seconds < 0.01 * device_hour.gpu_util_seen_seconds, true)
    and coalesce(device_hour.gr_engine_active_ratio_seconds < 0.01 * device_hour.gr_engine_active_seen_seconds, true)
    or max(greatest(hour.gpu_util_ratio_max, hour.fb_used_bytes_max)) over (
        partition by hour.cluster, hour.device_uuid, hour.gpu_instance_id, hour.hour_start_at
    ) > 0
    or 'container' in (hour.gpu_util_scope, hour.fb_used_scope) as is_mapped
from hour
left join facts.device_hour
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
