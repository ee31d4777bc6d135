-- Nodes with GPUs: model, resource names, GPUs in a unit, labels and taints, the latest of the day.
--
-- The model as an exporter names it, else as the node's labels do.
--
-- grain:  cluster, node_name
-- reads:  facts.node_day, lake.device_label, lake.node
-- params:
-- source: labels of GPU series; facts.node_day; Node objects
-- columns:
--   replica_gpus  GPUs in a unit of the device plugin's whole GPUs: below 1 where it counts replicas; null without accelerators
--   resources     names of its accelerators, as kube-state-metrics writes them
--   labels        labels by snapshots; null without one
--   taints        keys of taints that keep pods away, sorted; null without a snapshot
with reported as (
    select
        cluster,
        node_name,
        nullif(gpu_model, '') as exported_model
    from lake.device_label
    where node_name != ''
    union all by name
    select
        * exclude (gpu_model, start_at, end_at),
        nullif(gpu_model, '') as label_model
    from facts.node_day
    union all by name
    select *
    from lake.node
)

select
    cluster,
    node_name,
    coalesce(max(exported_model), max(label_model), '') as gpu_model,
    coalesce(arg_max(accelerator_resources, day), '') as resources,
    min(if(contains(accelerator_resources, '_mig_'), 1, least(1, coalesce(device_count / accelerator_count, 1))))
    filter (where accelerator_count > 0) as replica_gpus,
    arg_max(labels, observed_at) as labels,
    array_to_string(list_sort([
        split_part(taint, '=', 1) for taint in arg_max(taints, observed_at) if not ends_with(taint, ':PreferNoSchedule')
    ]), ', ') as taints
from reported
group by cluster, node_name
