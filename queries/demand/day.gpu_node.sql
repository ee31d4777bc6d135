-- Nodes with GPUs: model, resource names, GPUs in a unit, labels and taints, the latest of the day.
--
-- The model as an exporter names it, there or on another node, else as the node's labels do: these have '-' for a space. Without a label
-- that has the number of GPUs a unit is one: an exporter that shows fewer may be silent about the others; of nvidia.com/gpu.shared it is a
-- part of those that are known, one at least.
--
-- grain:  cluster, node_name
-- reads:  facts.node_day, lake.device_label, lake.node
-- source: labels of GPU series; facts.node_day; Node objects
-- columns:
--   labels        labels by snapshots; null without one
with exported as (
    select
        cluster,
        node_name,
        max(nullif(gpu_model, '')) as exported_model,
        count(distinct device_uuid) as device_count
    from lake.device_label
    where node_name != ''
    group by all
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
    select *
    from exported
    union all by name
    select
        node.* exclude (gpu_model, start_at, end_at),
        coalesce(spelling.exported_model, nullif(node.gpu_model, '')) as label_model,
        least(1, coalesce(coalesce(
            node.device_count, if(node.accelerator_resources like '%gpu_shared%', greatest(node.device_count_min, exported.device_count), null)
        ) / node.accelerator_count, 1)) as replica_gpus
    from facts.node_day as node
    left join exported
        using (cluster, node_name)
    left join spelling
        using (cluster, gpu_model)
    union all by name
    select *
    from lake.node
)

select
    cluster,
    node_name,
    coalesce(max(exported_model), max(label_model), '') as gpu_model,
    coalesce(arg_max(accelerator_resources, day), '') as resources,
    min(if(contains(accelerator_resources, '_mig_'), coalesce(gpu_units(accelerator_resources), 1), replica_gpus)) filter (where accelerator_count > 0) as replica_gpus,
    arg_max(labels, observed_at) as labels,
    array_to_string(list_sort([
        split_part(taint, '=', 1) for taint in arg_max(taints, observed_at) if not ends_with(taint, ':PreferNoSchedule')
    ]), ', ') as taints
from reported
group by cluster, node_name
