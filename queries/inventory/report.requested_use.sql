-- Request of each container on each of its GPUs beside its use: percent of cores against SM activity, bytes against framebuffer in use.
--
-- A whole device is 100 %. A share of memory becomes bytes by the device's total. Use with scope device repeats on the row of each sharer. MIG
-- instances and claims are not included.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid
-- reads:  facts.device_request, period.figure, report.accelerator
-- params: since_at, until_at
-- source: facts.device_request; period.figure, report.accelerator
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, requested_as, requested_by, problem, requested_core_percent, used_core_percent,
--          requested_memory_bytes, used_memory_bytes, used_memory_bytes_max, memory_total_bytes, core_scope, memory_scope, observed_seconds, unknown_reasons
--   memory_total_bytes      memory of the device
--   observed_seconds        s in which the device had data while allocated
with request as (
    select *
    from facts.device_request
    where device_type = 'gpu' and start_at < $until_at and end_at > $since_at
    qualify row_number() over (partition by cluster, namespace, pod_uid, container order by end_at desc, start_at desc) = 1
),

matched as (
    select
        use.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid)$',
        request.requested_as,
        if(request.container = '', 'pod', 'container') as requested_by,
        request.problem,
        request.device_core_percent as requested_core_percent,
        100 * use.sm_active_avg as used_core_percent,
        coalesce(
            request.device_memory_bytes, floor(request.device_memory_ratio_percent * accelerator.memory_total_bytes / 100)
        ) as requested_memory_bytes,
        accelerator.memory_used_bytes as used_memory_bytes,
        accelerator.memory_used_bytes_max as used_memory_bytes_max,
        accelerator.memory_total_bytes,
        'device' as core_scope,
        coalesce(accelerator.memory_scope, '') as memory_scope,
        use.observed_seconds,
        use.unknown_reasons['sm_active_avg'] as core_reason,
        accelerator.unknown_reasons as memory_reasons
    from period.figure as use
    inner join request
        using (cluster, namespace, pod)
    left join report.accelerator as accelerator
        on
            use.cluster = accelerator.cluster
            and use.namespace = accelerator.namespace
            and use.pod = accelerator.pod
            and use.pod_uid = accelerator.pod_uid
            and use.container = accelerator.container
            and use.device_uuid = accelerator.id
            and accelerator.gpu_instance_id = ''
    where
        use.subject = 'container_device'
        and use.gpu_instance_id = ''
        and use.pod_uid in (request.pod_uid, '')
        and request.container in (use.container, '')
    qualify row_number() over (
        partition by use.cluster, use.namespace, use.pod, use.pod_uid, use.container, use.device_uuid
        order by request.container desc, request.end_at desc
    ) = 1
)

select
    * exclude (core_reason, memory_reasons),
    unknown_reasons([
        ('used_core_percent', if(used_core_percent is null, core_reason, null)),
        ('requested_memory_bytes', if(requested_memory_bytes is null, memory_reasons['memory_total_bytes'], null)),
        ('used_memory_bytes', if(used_memory_bytes is null, memory_reasons['memory_used_bytes'], null)),
        ('used_memory_bytes_max', if(used_memory_bytes_max is null, memory_reasons['memory_used_bytes_max'], null)),
        ('memory_total_bytes', if(memory_total_bytes is null, memory_reasons['memory_total_bytes'], null))
    ]) as unknown_reasons
from matched
