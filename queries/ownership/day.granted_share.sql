-- Share of a GPU or MIG instance that each container was given, where Kubernetes says so: a row per grant.
--
-- Of a resource claim the part that it takes (day.claim_share), all of a device that it has whole; of Koordinator's grants the larger of
-- computing power and memory; of HAMi's and Volcano's the same, memory by the limit that HAMi shows, of the limits' sum where the GPU's is
-- unknown. A replica of a node that says how many replicas it makes of each GPU is that part of one, whoever has the others; elsewhere
-- replicas name no part, and are no rows. A grant is a claim's, a pod's or a container's: containers of one grant have it together.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, grant_key
-- reads:  day.authoritative_use, day.device_grant, day.gpu_node, day.node_sharing, facts.claim_device, facts.claim_use, facts.container_request,
--          facts.ownership, lake.device_label, lake.device_sample, lake.sample, lake.series
-- source: facts.claim_device, facts.claim_use; day.device_grant, day.authoritative_use; hami_vgpu_memory_limit_bytes, requests of gpucores and gpumem;
--         nvidia.com/gpu.replicas
-- columns:
--   is_relative  of what all were given: the GPU's memory is not known
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

requested as (
    select
        *,
        try_cast(regexp_extract(requested, '(gpu|vgpu-)cores=(\d+)', 2) as double) / 100 as core_ratio,
        try_cast(regexp_extract(requested, '(gpumem|vgpu-memory)-percentage=(\d+)', 2) as double) / 100 as memory_ratio,
        try_cast(regexp_extract(requested, '(gpumem|vgpu-memory)=(\d+)', 2) as double) * 1024 * 1024 as memory_bytes
    from facts.container_request
    where regexp_matches(requested, '/(gpu|vgpu-)(cores|mem)')
),

hami as (
    select
        owner.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
        max(greatest(requested.core_ratio, requested.memory_ratio)) as share_ratio,
        max(coalesce(limited.memory_bytes, requested.memory_bytes)) as memory_bytes,
        min(owner.start_at) as start_at,
        max(owner.end_at) as end_at
    from facts.ownership as owner
    left join limited
        using (cluster, device_uuid, namespace, pod, container)
    left join requested
        on
            owner.cluster = requested.cluster
            and owner.namespace = requested.namespace
            and owner.pod = requested.pod
            and owner.container = requested.container
            and (owner.pod_uid = requested.pod_uid or owner.pod_uid = '')
    where owner.gpu_instance_id = '' and (limited.pod is not null or requested.pod is not null)
    group by all
),

place as (
    select distinct
        label.* similar to '^(cluster|device_uuid|node_name)$',
        node.* similar to '^(replica_gpus|memory_bytes)$'
    from lake.device_label as label
    inner join day.gpu_node as node
        using (cluster, node_name)
),

-- Of nodes that share only some of their GPUs it is not known which unit is a replica.
replica as (
    select
        owner.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at|end_at)$',
        regexp_extract(request.requested, '\d+$')::double * place.replica_gpus as gpus
    from facts.ownership as owner
    inner join facts.container_request as request
        using (cluster, namespace, pod, pod_uid, container)
    inner join place
        using (cluster, device_uuid)
    inner join day.node_sharing as sharing
        using (cluster, node_name)
    where
        owner.gpu_instance_id = ''
        and regexp_matches(request.requested, '^nvidia.com/gpu(.shared)?=\d+$')
        and starts_with(sharing.evidence, 'node label') and sharing.strategy != 'none'
        and place.replica_gpus < 1 and abs(1 / place.replica_gpus - round(1 / place.replica_gpus)) < 1e-9
),

memory as (
    select
        cluster,
        device_uuid,
        max(fb_total_bytes)::double as total_bytes
    from lake.device_sample
    semi join hami
        using (cluster, device_uuid)
    where gpu_instance_id = ''
    group by all
)

select
    use.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
    concat_ws('/', use.claim_uid, use.share_id, use.request) as grant_key,
    min(allocated.share_ratio) as share_ratio,
    false as is_relative,
    min(use.start_at) as start_at,
    max(use.end_at) as end_at
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
    false as is_relative,
    min(use.start_at) as start_at,
    max(use.end_at) as end_at
from day.authoritative_use as use
inner join day.device_grant as part
    using (cluster, pod_uid)
where
    use.device_uuid = part.device_id
    and use.source = 'koordinator' and use.gpu_instance_id = '' and part.device_type = 'gpu'
group by use.cluster, use.device_uuid, use.gpu_instance_id, use.namespace, use.pod, use.pod_uid, use.container
union all by name
select * exclude (gpu_bytes, all_bytes, part_ratio)
from (
    select
        hami.* exclude (share_ratio, memory_bytes),
        concat_ws('/', hami.namespace, hami.pod, hami.container) as grant_key,
        coalesce(memory.total_bytes, place.memory_bytes) as gpu_bytes,
        hami.share_ratio is null and gpu_bytes is null as is_relative,
        coalesce(gpu_bytes, if(is_relative, sum(hami.memory_bytes) over (partition by hami.cluster, hami.device_uuid), null)) as all_bytes,
        greatest(hami.share_ratio, hami.memory_bytes / all_bytes) as part_ratio,
        if(part_ratio > 0, least(1, part_ratio), null) as share_ratio
    from hami
    left join memory
        using (cluster, device_uuid)
    left join place
        using (cluster, device_uuid)
) as limited_part
union all by name
select
    replica.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
    concat_ws('/', replica.namespace, replica.pod, replica.container) as grant_key,
    least(1, max(replica.gpus) / count(distinct other.device_uuid)) as share_ratio,
    false as is_relative,
    min(replica.start_at) as start_at,
    max(replica.end_at) as end_at
from replica
inner join replica as other
    using (cluster, namespace, pod, pod_uid, container)
where overlap_ms(replica.start_at, replica.end_at, other.start_at, other.end_at) > 0
group by
    replica.cluster, replica.device_uuid, replica.gpu_instance_id, replica.namespace, replica.pod, replica.pod_uid, replica.container
