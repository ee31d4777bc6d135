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
with exported as (
    select
        cluster,
        node_name,
        max(gpu_model) as gpu_model
    from lake.device_label
    where node_name != '' and gpu_model != ''
    group by all
),

labelled as (
    select
        cluster,
        node_name,
        max(gpu_model) as gpu_model,
        coalesce(arg_max(accelerator_resources, day), '') as resources,
        min(if(contains(accelerator_resources, '_mig_'), 1, least(1, coalesce(device_count / accelerator_count, 1))))
        filter (where accelerator_count > 0) as replica_gpus
    from facts.node_day
    group by all
),

looked as (
    select
        cluster,
        node_name,
        arg_max(labels, observed_at) as labels,
        arg_max(taints, observed_at) as taints
    from lake.node
    group by all
)

select
    cluster,
    node_name,
    coalesce(exported.gpu_model, labelled.gpu_model, '') as gpu_model,
    coalesce(labelled.resources, '') as resources,
    labelled.replica_gpus,
    looked.labels,
    array_to_string(list_sort([
        split_part(taint, '=', 1) for taint in looked.taints if not ends_with(taint, ':PreferNoSchedule')
    ]), ', ') as taints
from labelled
full join exported
    using (cluster, node_name)
left join looked
    using (cluster, node_name)
