-- Allocated, free and unavailable GPUs of each node in intervals, from requests, placements and the node's state alone.
--
-- No telemetry is needed. A request is allocated from the pod's binding on. The remainder is free if the node accepts pods; on other nodes it is
-- unavailable, and so are unhealthy GPUs. Time without a list of pods or of the node has no row. Requests and nodes each come from the source
-- with more data on the day.
--
-- revision: 20
-- grain:  cluster, node_name, state, pod_uid, is_claim, start_at
-- reads:  day.gpu_node, day.gpu_request, day.host_amount, day.node_capacity, facts.device_capacity
-- source: day.gpu_request, day.node_capacity; facts.device_capacity at the end of the interval
-- columns: cluster, node_name, source, state, is_claim, namespace, pod, pod_uid, start_at, end_at, gpu_count, whole_count,
--          largest_part_gpus, gpu_model, resources, resource_units, replica_gpus, taints, cpu_cores, host_memory_bytes, node_cpu_cores, node_memory_bytes
--   is_claim           whether resource claims request them
--   gpu_model          model on the node; '' where unknown
--   cpu_cores          CPU cores requested, or free of node_cpu_cores
--   host_memory_bytes  memory of the node requested, or free
with daily as (
    select
        *,
        unnest(generate_series(date_trunc('day', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 day)) as day_at
    from (
        select
            columns('^(cluster|source|start_at|end_at)$'),
            true as is_of_nodes
        from day.node_capacity
        where resource = 'gpu'
        union all by name
        select
            columns('^(cluster|source|start_at|end_at)$'),
            false as is_of_nodes
        from day.gpu_request
        where stage in ('bound', 'placed') and node_name != ''
    ) as each_source
),

-- Each day separately, because snapshots also cover its neighbors, and kube-state-metrics only the day.
best as (
    select columns('^(cluster|source|is_of_nodes|day_at)$')
    from daily
    group by cluster, source, is_of_nodes, day_at
    qualify row_number() over (
        partition by cluster, is_of_nodes, day_at
        order by sum(overlap_ms(start_at, end_at, day_at, day_at + interval 1 day)) desc, source desc
    ) = 1
),

best_of_nodes as (
    from best
    where is_of_nodes
),

advertised as (
    select
        step.* similar to '^(cluster|node_name)$',
        best_of_nodes.day_at,
        regexp_replace(step.resource, '[^a-zA-Z0-9_]', '_', 'g') as resource,
        max(step.schedulable_units) as units
    from day.node_capacity as step
    inner join best_of_nodes
        using (cluster, source)
    where step.resource != 'gpu' and step.start_at < best_of_nodes.day_at + interval 1 day and step.end_at > best_of_nodes.day_at
    group by all
),

unit as (
    select
        columns('^(cluster|node_name|day_at)$'),
        map_from_entries(list((resource, units) order by resource)) as resource_units
    from advertised
    group by all
),

step as (
    select
        step.* replace (
            greatest(step.start_at, best_of_nodes.day_at) as start_at,
            least(step.end_at, best_of_nodes.day_at + interval 1 day) as end_at
        ),
        unnest([
            entry for entry in [
                { 'state': 'free', 'gpu_count': step.free_units },
                { 'state': step.unavailable_state, 'gpu_count': step.unavailable_units }
            ] if entry.gpu_count > 0
        ], recursive := true)
    from day.node_capacity as step
    inner join best_of_nodes
        using (cluster, source)
    where
        step.resource = 'gpu'
        and step.start_at < best_of_nodes.day_at + interval 1 day
        and step.end_at > best_of_nodes.day_at
),

reported as (
    select
        request.* similar to '^(cluster|node_name|source|is_claim|namespace|pod|pod_uid)$',
        'allocated' as state,
        greatest(request.start_at, best.day_at) as start_at,
        least(request.end_at, best.day_at + interval 1 day) as end_at,
        sum(request.effective_units) as gpu_count
    from day.gpu_request as request
    inner join best
        using (cluster, source)
    -- Allocatable units of nodes limit what can be allocated on them.
    semi join best_of_nodes
        using (cluster)
    where
        request.start_at < best.day_at + interval 1 day
        and request.end_at > best.day_at
        and request.stage in ('bound', 'placed') and request.node_name != ''
        and not best.is_of_nodes
    group by all
    having count(*) = count(request.effective_units) and sum(request.effective_units) > 0
    union all by name
    select
        * exclude (resource, schedulable_units, free_units, unavailable_units, unavailable_state),
        false as is_claim,
        '' as namespace,
        '' as pod,
        '' as pod_uid
    from step
)

select
    reported.* exclude (cpu_cores, host_memory_bytes),
    count(*) filter (where least(device.free_core_percent, device.free_memory_ratio_percent) >= 100) as whole_count,
    max(least(device.free_core_percent, device.free_memory_ratio_percent)) / 100 as largest_part_gpus,
    coalesce(any_value(node.gpu_model), '') as gpu_model,
    coalesce(any_value(node.resources), '') as resources,
    any_value(unit.resource_units) as resource_units,
    any_value(node.replica_gpus) as replica_gpus,
    any_value(node.taints) as taints,
    if(any_value(reported.pod) = '', any_value(host.cpu_cores) - any_value(reported.cpu_cores), any_value(request.cpu_cores)) as cpu_cores,
    if(any_value(reported.pod) = '', any_value(host.host_memory_bytes) - any_value(reported.host_memory_bytes), any_value(request.host_memory_bytes)) as host_memory_bytes,
    any_value(host.cpu_cores) as node_cpu_cores,
    any_value(host.host_memory_bytes) as node_memory_bytes
from reported
left join day.gpu_node as node
    using (cluster, node_name)
left join unit
    on reported.cluster = unit.cluster and reported.node_name = unit.node_name and date_trunc('day', reported.start_at) = unit.day_at
left join day.host_amount as host
    on reported.cluster = host.cluster and reported.node_name = host.node_name and host.pod_uid = ''
left join day.host_amount as request
    on reported.cluster = request.cluster and reported.pod_uid = request.pod_uid and request.pod_uid != ''
left join facts.device_capacity as device
    on
        reported.cluster = device.cluster
        and reported.node_name = device.node_name
        and reported.state = 'free'
        and device.device_type = 'gpu'
        and reported.end_at > device.start_at
        and reported.end_at <= device.end_at
group by all
