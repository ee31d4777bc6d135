-- GPUs that each pod requests under any resource name, and its progress.
--
-- A GPU under several names counts once: percent of Koordinator's, HAMi's and Volcano's cores or memory, the larger, MIG slices and replicas of a shared GPU
-- are parts of GPUs. A replica is devices ÷ replicas of its node; of a pod without a node, of the node of the cluster that shares least.
--
-- grain:  cluster, source, is_claim, pod_uid, start_at
-- reads:  day.accelerator_resource, day.claim_request, day.class_device, day.gpu_node, day.request
-- source: day.request, day.claim_request
-- columns:
--   is_claim         by resource claims, which are counted apart
--   pod_uid          its uid; of a claim without a pod the claim's
with common as (
    select
        cluster,
        max(replica_gpus) as replica_gpus
    from day.gpu_node
    group by all
),

name as (
    select distinct
        columns('^(cluster|resource|unit_gpus)$'),
        starts_with(resource, 'koordinator.sh/') as is_percent,
        regexp_matches(resource, '^(nvidia.com/gpu|volcano.sh/vgpu-)(cores|mem(ory)?-percentage)$') as is_part
    from day.accelerator_resource
),

-- A class whose devices are not known is one of GPUs by its name; how much of a GPU its partitions are is not known.
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
        request.* exclude (resource, given_resource, is_opencosts, is_claim, container_units, effective_units, claim_units),
        greatest(
            if(
                max(request.effective_units) filter (where name.is_part) > 0,
                sum(request.effective_units * name.unit_gpus) filter (where not name.is_percent)
                * least(1, max(request.effective_units) filter (where name.is_part) / 100),
                sum(request.effective_units * name.unit_gpus * if(name.unit_gpus = 1, coalesce(ratio.replica_gpus, common.replica_gpus, 1), 1))
                filter (where not name.is_percent)
            ),
            max(request.effective_units * name.unit_gpus) filter (where name.is_percent)
        ) as gpus
    from day.request as request
    inner join name
        using (cluster, resource)
    left join day.gpu_node as ratio
        using (cluster, node_name)
    left join common
        using (cluster)
    where not request.is_claim
    group by all
)

select
    * exclude (gpus),
    false as is_claim,
    gpus as effective_units
from sized
where gpus > 0
union all by name
select
    request.* exclude (resource, device_class, effective_units, claim_units),
    'snapshot' as source,
    true as is_claim,
    if(bool_or(request.effective_units is null or contains(request.resource, 'mig')), null, sum(request.effective_units)) as effective_units
from day.claim_request as request
inner join class
    using (cluster, resource)
where class.is_gpu
group by all
