-- Findings: namespaces whose pods wait long for accelerators.
--
-- Judged where several pods were given a place in the window, or still waited at its end, these by what they have waited so far.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.pod_wait
-- params: since_at, until_at, wait_hours_max, wait_pods_min
-- source: facts.pod_wait
-- columns: code, detail, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, gpu_model, gpu_hours,
--          confidence, evidence, first_seen_at
--   detail           what they asked for
--   namespace        namespace that waits
--   pod              ''
--   pod_uid          ''
--   container        ''
--   node_name        ''
--   device_uuid      ''
--   gpu_instance_id  ''
--   gpu_model        models that they were given
--   gpu_hours        h x GPUs for which they waited within the window; null where a unit of the resource is no GPU
--   first_seen_at    UTC, the hour in which the first of them began to wait
with last_told as (
    select *
    from facts.pod_wait
    qualify row_number() over (partition by cluster, namespace, pod, pod_uid order by end_at desc, scheduled_at desc nulls last) = 1
),

waited as (
    select
        *,
        scheduled_at is null as is_waiting,
        coalesce(scheduled_at, least(waiting_until_at, $until_at::timestamp)) as waited_until_at
    from last_told
    where
        created_at < $until_at
        and (
            (scheduled_at >= $since_at and scheduled_at < $until_at)
            or (scheduled_at is null and waiting_until_at > $since_at)
        )
),

timed as (
    select
        *,
        epoch_ms(waited_until_at - created_at) / 3600000 as wait_hours,
        requested_units * epoch_ms(waited_until_at - greatest(created_at, $since_at::timestamp)) / 3600000 as wait_unit_hours
    from waited
),

summed as (
    select
        cluster,
        namespace,
        resource,
        string_agg(distinct gpu_model, ', ' order by gpu_model) filter (where gpu_model != '') as gpu_model,
        count(*) as pod_count,
        count(*) filter (where is_waiting) as waiting_count,
        quantile_cont(wait_hours, 0.5) as wait_hours_p50,
        quantile_cont(wait_hours, 0.95) as wait_hours_p95,
        sum(wait_unit_hours) as wait_unit_hours,
        date_trunc('hour', min(greatest(created_at, $since_at::timestamp))) as first_seen_at
    from timed
    group by cluster, namespace, resource
)

select
    'GR510' as code,
    resource as detail,
    cluster,
    namespace,
    '' as pod,
    '' as pod_uid,
    '' as container,
    '' as node_name,
    '' as device_uuid,
    '' as gpu_instance_id,
    coalesce(gpu_model, '') as gpu_model,
    -- A unit of a MIG profile or of Koordinator's shares is less than a GPU.
    if(resource in ('nvidia.com/gpu', 'amd.com/gpu'), wait_unit_hours, null) as gpu_hours,
    'high' as confidence,
    format(
        '{} pod{} waited, half of them {:.1f} h or more, one in twenty {:.1f} h; {} still waited at the end',
        pod_count, if(pod_count = 1, '', 's'), wait_hours_p50, wait_hours_p95, waiting_count
    ) as evidence,
    first_seen_at
from summed
where pod_count >= $wait_pods_min and wait_hours_p95 >= $wait_hours_max
