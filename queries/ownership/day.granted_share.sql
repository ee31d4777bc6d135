-- Share of a GPU or MIG instance that Kubernetes allocated to each container, one row per grant.
--
-- A resource claim grants its part of the device (day.claim_share), or all of it. Grants of Koordinator, HAMi and Volcano are the larger of cores and
-- memory; HAMi's memory limit is a part of the GPU's memory, or of all limits on the GPU if that is unknown. A replica is 1/n of a GPU if the node's
-- labels report n replicas per GPU, whether the others are allocated or not; other replicas have an unknown part and no row. A grant belongs to a
-- claim, a pod or a container; the containers of one grant share it.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, grant_key
-- reads:  day.authoritative_use, day.device_grant, day.gpu_node, day.node_sharing, facts.claim_device, facts.claim_use, facts.container_request,
--          facts.ownership, lake.device_label, lake.device_sample, lake.sample, lake.series
-- source: facts.claim_device, facts.claim_use; day.device_grant, day.authoritative_use; hami_vgpu_memory_limit_bytes, requests of gpucores and gpumem;
--         nvidia.com/gpu.replicas
-- columns:
--   is_relative  whether it is a part of all limits on the GPU, because the GPU's memory is unknown
with limited as (
    select
        series.* similar to '^(cluster|device_uuid|namespace|pod|container)$',
        max(sample.value) as memory_bytes
    from lake.series
    inner join lake.sample
        using (cluster, series_id)
    where series.scope = 'pod' and series.signal = 'fb_total_bytes' and series.device_uuid != ''
    group by all
),

-- If a node shares only some of its GPUs, its shared units are unknown.
place as (
    select distinct
        label.* similar to '^(cluster|device_uuid)$',
        node.memory_bytes,
        if(
            sharing.strategy != 'none' and starts_with(sharing.evidence, 'node label')
            and node.replica_gpus < 1 and abs(1 / node.replica_gpus - round(1 / node.replica_gpus)) < 1e-9,
            node.replica_gpus, null
        ) as replica_gpus
    from lake.device_label as label
    inner join day.gpu_node as node
        using (cluster, node_name)
    left join day.node_sharing as sharing
        using (cluster, node_name)
),

requested as (
    select
        *,
        try_cast(regexp_extract(requested, '^nvidia.com/gpu(.shared)?=(\d+)$', 2) as double) as units,
        try_cast(regexp_extract(requested, '(gpu|vgpu-)cores=(\d+)', 2) as double) / 100 as core_ratio,
        try_cast(regexp_extract(requested, '(gpumem|vgpu-memory)-percentage=(\d+)', 2) as double) / 100 as memory_ratio,
        try_cast(regexp_extract(requested, '(gpumem|vgpu-memory)=(\d+)', 2) as double) * 1024 * 1024 as memory_bytes
    from facts.container_request
    where units > 0 or regexp_matches(requested, '/(gpu|vgpu-)(cores|mem)')
),

owner as (
    select
        *,
        count(distinct device_uuid) over (partition by cluster, namespace, pod, pod_uid, container) as device_count
    from facts.ownership
    where gpu_instance_id = ''
),

part as (
    select
        owner.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
        max(place.memory_bytes) as gpu_bytes,
        max(greatest(requested.core_ratio, requested.memory_ratio, requested.units * place.replica_gpus / owner.device_count)) as share_ratio,
        max(coalesce(limited.memory_bytes, requested.memory_bytes)) as memory_bytes
    from owner
    left join place
        using (cluster, device_uuid)
    left join limited
        using (cluster, device_uuid, namespace, pod, container)
    left join requested
        on
            owner.cluster = requested.cluster
            and owner.namespace = requested.namespace
            and owner.pod = requested.pod
            and owner.container = requested.container
            and (owner.pod_uid = requested.pod_uid or owner.pod_uid = '')
    where limited.pod is not null or (requested.pod is not null and (requested.units is null or place.replica_gpus > 0))
    group by all
),

memory as (
    select
        cluster,
        device_uuid,
        max(fb_total_bytes)::double as total_bytes
    from lake.device_sample
    semi join part
        using (cluster, device_uuid)
    where gpu_instance_id = ''
    group by all
)

select
    use.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
    concat_ws('/', use.claim_uid, use.share_id, use.request) as grant_key,
    min(allocated.share_ratio) as share_ratio,
    false as is_relative
from facts.claim_use as use
inner join facts.claim_device as allocated
    using (cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request)
where
    use.start_at < allocated.end_at
    and use.end_at > allocated.start_at
    and use.claim_uid != '' and not use.is_admin_access and use.device_uuid != '' and use.gpu_instance_id is not null
group by
    use.cluster, use.device_uuid, use.gpu_instance_id, use.namespace, use.pod, use.pod_uid, use.container,
    use.claim_uid, use.share_id, use.request
union all by name
select
    use.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
    use.pod_uid as grant_key,
    max(least(100, greatest(part.core_percent, part.memory_ratio_percent)))
    filter (where coalesce(part.core_percent, part.memory_ratio_percent) is not null) / 100 as share_ratio,
    false as is_relative
from day.authoritative_use as use
inner join day.device_grant as part
    using (cluster, pod_uid)
where
    use.device_uuid = part.device_id
    and use.source = 'koordinator' and use.gpu_instance_id = '' and part.device_type = 'gpu'
group by use.cluster, use.device_uuid, use.gpu_instance_id, use.namespace, use.pod, use.pod_uid, use.container
union all by name
select * exclude (known_bytes, all_bytes, part_ratio)
from (
    select
        part.* exclude (gpu_bytes, share_ratio, memory_bytes),
        concat_ws('/', part.namespace, part.pod, part.container) as grant_key,
        coalesce(memory.total_bytes, part.gpu_bytes) as known_bytes,
        part.share_ratio is null and known_bytes is null as is_relative,
        coalesce(known_bytes, if(is_relative, sum(part.memory_bytes) over (partition by part.cluster, part.device_uuid), null)) as all_bytes,
        greatest(part.share_ratio, part.memory_bytes / all_bytes) as part_ratio,
        if(part_ratio > 0, least(1, part_ratio), null) as share_ratio
    from part
    left join memory
        using (cluster, device_uuid)
) as limited_part
