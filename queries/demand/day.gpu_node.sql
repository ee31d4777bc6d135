-- Nodes with GPUs: model, resource names, GPUs per unit, and the latest labels and taints of the day.
--
-- The model has an exporter's name, from this or another node; else the name in the node's labels, where '-' replaces spaces. The GPUs per unit come
-- from the label with the number of GPUs; for nvidia.com/gpu.shared, from the known GPUs (a minimum). Without them: if as many MIG instances are
-- exported as there are units, and no whole GPU, units are these instances. If several pods are on one GPU, units are replicas of the exported GPUs.
-- Otherwise a unit is one GPU, because an exporter with fewer GPUs than units may lack some.
--
-- grain:  cluster, node_name
-- reads:  day.accelerator_resource, day.kube_allocatable, day.kube_series, day.owner_run, day.snapshot_allocatable, facts.node_day, lake.device_label,
--          lake.device_sample, lake.node
-- source: labels of GPU series; fb_total_bytes; facts.node_day; Node objects
-- columns:
--   labels        labels in snapshots; null without a snapshot
--   memory_bytes  memory of its largest GPU, by label, exporter or Koordinator
with part as (
    select
        columns('^(cluster|node_name|device_uuid|gpu_instance_id)$'),
        max(nullif(gpu_model, '')) as gpu_model,
        if(gpu_instance_id = '', null, partition_ratio(max(gpu_instance_profile), max(gpu_model))) as part_ratio
    from lake.device_label
    where node_name != ''
    group by cluster, node_name, device_uuid, gpu_instance_id
),

device as (
    select
        columns('^(cluster|node_name|device_uuid)$'),
        max(gpu_model) as gpu_model,
        count(part_ratio) as part_count,
        sum(part_ratio) as part_ratio,
        part_count = 0 as is_whole
    from part
    group by cluster, node_name, device_uuid
),

-- After a change of pods, series may name the previous pod for some more sampling steps.
shared as (
    select distinct columns('^(cluster|device_uuid)$')
    from day.owner_run as one
    inner join day.owner_run as other
        using (cluster, device_uuid, gpu_instance_id)
    where
        gpu_instance_id = ''
        and (one.namespace, one.pod, one.pod_uid) < (other.namespace, other.pod, other.pod_uid)
        and overlap_ms(one.start_at, one.end_at, other.start_at, other.end_at) >= 600000
),

unit as (
    select
        columns('^(cluster|node_name)$'),
        max(allocatable_units) filter (where gpu_units(resource) = 1) as unit_count,
        max(allocatable_units) filter (where resource = 'koordinator.sh/gpu-memory')
        / nullif(max(allocatable_units * gpu_units(resource)) filter (where starts_with(resource, 'koordinator.sh/')), 0) as gpu_bytes
    from (
        from day.kube_allocatable
        union all by name
        from day.snapshot_allocatable
    ) as each_source
    group by cluster, node_name
),

exported as (
    select
        columns('^(cluster|node_name)$'),
        max(device.gpu_model) as exported_model,
        count(*) as device_count,
        case
            when sum(device.part_count) = max(unit.unit_count) and not bool_or(device.is_whole) then sum(device.part_ratio) / sum(device.part_count)
            when count(shared.device_uuid) > 0 then least(1, count(*) filter (where device.is_whole) / max(unit.unit_count))
        end as shared_gpus
    from device
    left join shared
        using (cluster, device_uuid)
    left join unit
        using (cluster, node_name)
    group by cluster, node_name
),

spelling as (
    select
        cluster,
        replace(exported_model, ' ', '-') as gpu_model,
        max(exported_model) as exported_model
    from exported
    group by all
),

reported as (
    from exported
    union all by name
    select
        node.* exclude (gpu_model, start_at, end_at),
        coalesce(spelling.exported_model, nullif(node.gpu_model, '')) as label_model,
        if(contains(node.accelerator_resources, '_mig_'), coalesce(gpu_units(node.accelerator_resources), exported.shared_gpus, 1), least(1, coalesce(coalesce(
            node.device_count, if(node.accelerator_resources like '%gpu_shared%', greatest(node.device_count_min, exported.device_count), null)
        ) / node.accelerator_count, exported.shared_gpus, 1))) as replica_gpus
    from facts.node_day as node
    left join exported
        using (cluster, node_name)
    left join spelling
        using (cluster, gpu_model)
    union all by name
    select
        *,
        labels['nvidia.com/gpu.memory'] as gpu_memory
    from lake.node
    union all by name
    select columns('^(cluster|node_name|gpu_memory)$')
    from day.kube_series
    where signal = 'kube_node_labels'
    union all by name
    select
        device.* similar to '^(cluster|node_name)$',
        (max(sample.fb_total_bytes) / 1048576)::varchar as gpu_memory
    from device
    inner join lake.device_sample as sample
        using (cluster, device_uuid)
    -- Only clusters with these resources need all samples.
    semi join day.accelerator_resource as name
        on device.cluster = name.cluster and name.resource in ('nvidia.com/gpumem', 'volcano.sh/vgpu-memory')
    group by all
)

select
    columns('^(cluster|node_name)$'),
    coalesce(max(exported_model), max(label_model), '') as gpu_model,
    coalesce(arg_max(accelerator_resources, day), '') as resources,
    min(replica_gpus) filter (where accelerator_count > 0) as replica_gpus,
    arg_max(labels, observed_at) as labels,
    greatest(max(try_cast(gpu_memory as double)) * 1048576, max(unit.gpu_bytes)) as memory_bytes,
    array_to_string(list_sort([
        split_part(taint, '=', 1) for taint in arg_max(taints, observed_at) if not ends_with(taint, ':PreferNoSchedule')
    ]), ', ') as taints
from reported
left join unit
    using (cluster, node_name)
group by cluster, node_name
