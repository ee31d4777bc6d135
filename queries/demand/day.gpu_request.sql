-- GPUs that each pod requests under any resource name, and its progress.
--
-- A GPU with several resource names counts once. MIG slices, replicas of a shared GPU, and percentages of cores or memory (Koordinator, HAMi,
-- Volcano; the larger one) are parts of GPUs. A replica is the node's devices ÷ replicas; without a node, the largest such part in the cluster. An
-- amount of memory is a part of the memory of the node's GPUs; without a node, it is known if all GPUs have equal memory, or if cores are the larger
-- part on each.
--
-- grain:  cluster, source, is_claim, pod_uid, resource, start_at
-- reads:  day.accelerator_resource, day.claim_request, day.class_device, day.gpu_node, day.request
-- source: day.request, day.claim_request
-- columns:
--   is_claim         whether resource claims request them, in rows of their own
--   resource         of claims, the class; '' for all extended resources
--   pod_uid          uid of the pod; of the claim if it has no pod
--   effective_units  GPUs requested; null for a part of unknown size
with name as (
    select distinct
        columns('^(cluster|resource|unit_gpus)$'),
        starts_with(resource, 'koordinator.sh/') as is_percent,
        regexp_matches(resource, '^(nvidia.com/gpu|volcano.sh/vgpu-)(cores|mem(ory)?-percentage)$') as is_part,
        if(resource = 'koordinator.sh/gpu-memory', 1, if(resource in ('nvidia.com/gpumem', 'volcano.sh/vgpu-memory'), 1048576, null)) as unit_bytes
    from day.accelerator_resource
),

common as (
    select
        cluster,
        max(replica_gpus) as replica_gpus,
        if(count(memory_bytes) = count(*), min(memory_bytes), null) as least_bytes,
        min(memory_bytes) < max(memory_bytes) as is_mixed
    from day.gpu_node
    where resources != ''
    group by all
),

-- A class with unknown devices is a GPU class by its name; the GPU share of its partitions is unknown.
class as (
    select
        request.cluster,
        request.resource,
        coalesce(bool_or(regexp_matches(device.driver, '^(gpu|gaudi|tpu)[.]')), regexp_matches(request.resource, 'gpu|mig|gaudi|tpu')) as is_gpu
    from day.claim_request as request
    left join day.class_device as device
        using (cluster, device_class)
    group by request.cluster, request.resource
),

sized as (
    select
        request.* exclude (resource, counted_resource, is_opencosts, is_claim, container_units, effective_units, claim_units),
        max(coalesce(node.memory_bytes, if(request.node_name = '', common.least_bytes, null))) as all_bytes,
        max(request.effective_units * name.unit_bytes) as wanted_bytes,
        max(request.effective_units) filter (where name.is_part) / 100 as core_ratio,
        greatest(core_ratio, wanted_bytes / all_bytes) as part_ratio,
        max(request.effective_units * name.unit_gpus) filter (where name.is_percent) as percent_gpus,
        -- The memory of GPUs does not matter for whole GPUs of Koordinator, nor where cores are the larger part on every GPU.
        bool_or(name.unit_gpus > 0 or name.is_percent) and wanted_bytes > 0 and coalesce(percent_gpus, 0) < 1 and (
            all_bytes is null
            or bool_or(request.node_name = '' and common.is_mixed) and wanted_bytes / all_bytes > coalesce(greatest(core_ratio, percent_gpus), 0)
        ) as is_unsized,
        greatest(
            if(
                part_ratio > 0,
                sum(request.effective_units * name.unit_gpus) filter (where not name.is_percent) * least(1, part_ratio),
                sum(request.effective_units * name.unit_gpus * if(name.unit_gpus = 1, coalesce(node.replica_gpus, common.replica_gpus, 1), 1))
                filter (where not name.is_percent)
            ),
            percent_gpus,
            if(bool_or(name.is_percent), wanted_bytes / all_bytes, null)
        ) as gpus
    from day.request as request
    inner join name
        using (cluster, resource)
    left join day.gpu_node as node
        using (cluster, node_name)
    left join common
        using (cluster)
    where not request.is_claim
    group by all
)

select
    * exclude (all_bytes, wanted_bytes, core_ratio, part_ratio, percent_gpus, is_unsized, gpus),
    '' as resource,
    false as is_claim,
    if(is_unsized, null, gpus) as effective_units
from sized
where gpus > 0 or is_unsized
union all by name
select
    request.* exclude (counted_resource, is_opencosts, container_units, effective_units, claim_units),
    if(contains(resource, 'mig'), null, columns('^(effective|claim)_units$'))
from day.request as request
inner join class
    using (cluster, resource)
where request.is_claim and class.is_gpu
