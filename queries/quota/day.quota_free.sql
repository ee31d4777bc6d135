-- Free GPUs for a request of each size, over time: only nodes of its flavor with enough free GPUs count, and none that is not ready or cordoned.
--
-- GPUs under Koordinator's and other names count once. Whole GPUs and instances of each MIG profile are apart: nos counts GB, KAI slices.
--
-- grain:  cluster, system, resource, flavor, part, request_gpus, start_at
-- reads:  day.node_outage, day.quota_flavor_node, day.quota_native, day.quota_node, day.quota_pod, day.quota_request
-- source: day.quota_node less the pods that were bound, and outages
-- columns:
--   request_gpus  GPUs of a request that waits for some time
--   free_gpus     GPUs available for such requests
with gpus as (
    select
        system as counted_by,
        requests,
        regexp_extract(if(system = '', resource, requests), 'mig-[^=]*') as part,
        greatest(
            sum(amount_gpus) filter (where resource not like 'koordinator%'), max(amount_gpus) filter (where resource like 'koordinator%')
        )::decimal(38, 9) as amount
    from day.quota_native
    where system = '' or resource = 'nos.nebuly.com/gpu-memory' or system = 'kai' and resource = 'gpu'
    group by system, requests, part
),

size as (
    select
        columns('^(cluster|system|resource|flavor|part)$'),
        if(system = 'kai' or resource = 'nos.nebuly.com/gpu-memory', system, '') as counted_by,
        round(pod_gpus, 6) as request_gpus,
        min(pod_gpus) as exact_gpus
    from day.quota_request
    where pod_gpus > 0 and (bound_at is null or bound_at > created_at)
    group by all
),

-- Koordinator's resource names count only where the node has no other names.
allocatable as (
    select
        node.* similar to '^(cluster|node_name|start_at|end_at)$',
        gpus.* exclude (requests),
        node.resource like 'koordinator%' as is_other_name
    from day.quota_node as node
    inner join gpus
        on map([node.resource], [node.allocatable_native])::text = gpus.requests
    where gpus.amount > 0
    qualify not is_other_name or bool_and(is_other_name) over (partition by node.cluster, node.node_name)
),

step as (
    select
        * exclude (is_other_name, amount),
        if(bool_or(is_other_name), max(amount), sum(amount)) as amount
    from allocatable
    group by all
    union all by name
    select
        pod.* similar to '^(cluster|node_name)$',
        pod.bound_at as start_at,
        pod.ended_at as end_at,
        gpus.* similar to '^(counted_by|part)$',
        -gpus.amount as amount
    from day.quota_pod as pod
    inner join gpus
        on pod.requests::text = gpus.requests
    semi join allocatable
        using (cluster, node_name)
    where pod.bound_at is not null and gpus.amount > 0
    union all by name
    select
        outage.* exclude (cause),
        allocatable.* similar to '^(counted_by|part)$',
        -1000000000 as amount
    from day.node_outage as outage
    inner join allocatable
        using (cluster, node_name)
),

grown as (
    select
        node.* similar to '^(cluster|start_at)$',
        size.* similar to '^(system|resource|flavor|part|request_gpus)$',
        if(of_flavor.cluster is null or node.part != size.part, 0, floor(greatest(0, node.amount)::double / size.exact_gpus + 1e-6) * size.request_gpus) as fit,
        fit - coalesce(lag(fit) over (
            partition by node.cluster, node.node_name, node.part, size.system, size.resource, size.flavor, size.part, size.request_gpus
            order by node.start_at
        ), 0) as growth
    from running_amounts(step, (cluster, node_name, counted_by, part)) as node
    inner join size
        using (cluster, counted_by)
    left join day.quota_flavor_node as of_flavor
        using (cluster, flavor, node_name)
),

-- The first row stays even with 0: from then on free capacity is known, and it is none.
instant as (
    select
        columns('^(cluster|system|resource|flavor|part|request_gpus|start_at)$'),
        sum(growth::decimal(38, 9)) as all_growth
    from grown
    group by cluster, system, resource, flavor, part, request_gpus, start_at
    qualify all_growth != 0 or start_at = min(start_at) over (partition by cluster, system, resource, flavor, part, request_gpus)
)

select
    * exclude (all_growth),
    coalesce(lead(start_at) over one, 'infinity'::timestamp) as end_at,
    (sum(all_growth) over one)::double as free_gpus
from instant
window one as (
    partition by cluster, system, resource, flavor, part, request_gpus
    order by start_at
)
