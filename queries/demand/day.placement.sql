-- GPU models that pods may use, by their node selector and node affinity.
--
-- Rules for labels that no node snapshot has are ignored, because such labels may not be recorded.
--
-- grain:  cluster, placement
-- reads:  day.gpu_node, lake.pod
-- source: node selector and required node affinity of pods; labels of nodes
-- columns:
--   wanted_model  models of the allowed nodes, sorted; any if all are allowed and none is named; if no node is allowed, the named models or none
with requested as (
    select distinct
        columns('^(cluster|placement)$'),
        from_json(placement, '[[{"key":"VARCHAR","operator":"VARCHAR","values":["VARCHAR"]}]]') as alternatives
    from lake.pod
    where placement != ''
),

known as (
    select
        cluster,
        -- Labels that are recorded for every node that has them.
        [
            'nvidia.com/gpu.product', 'amd.com/gpu.product-name', 'beta.amd.com/gpu.product-name', 'node.koordinator.sh/gpu-model',
            'cloud.google.com/gke-accelerator', 'karpenter.k8s.aws/instance-gpu-name'
        ] as model_labels,
        list_distinct(flatten(list(map_keys(labels)))) || model_labels as label_names
    from day.gpu_node
    group by cluster
),

judged as (
    select
        requested.*,
        known.model_labels,
        node.gpu_model,
        list_bool_or(list_transform(requested.alternatives, lambda term: list_bool_and([true] || [
            rule_holds(rule, node.labels) for rule in term if list_contains(known.label_names, rule.key)
        ]))) as is_allowed
    from requested
    inner join known
        using (cluster)
    inner join day.gpu_node as node
        using (cluster)
    where node.labels is not null and node.resources != ''
),

model as (
    select
        columns('^(cluster|placement)$'),
        coalesce(nullif(gpu_model, ''), 'unknown') as gpu_model,
        bool_or(is_allowed) as is_allowed,
        bool_or(is_allowed) and not bool_and(is_allowed) as is_selective,
        array_to_string(list_sort(list_distinct(flatten([
            rule.values for rule in flatten(any_value(alternatives))
            if rule.operator = 'In' and list_contains(any_value(model_labels), rule.key)
        ]))), ', ') as named
    from judged
    group by all
)

select
    columns('^(cluster|placement)$'),
    case
        when max(named) = '' and bool_and(is_allowed) then 'any'
        else coalesce(string_agg(gpu_model, ', ' order by gpu_model) filter (where is_allowed), nullif(max(named), ''), 'none')
    end as wanted_model,
    bool_or(is_selective) as is_selective
from model
group by cluster, placement
