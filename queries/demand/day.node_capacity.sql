-- Allocated and free units of each accelerator resource on each node in steps, as the scheduler counts them.
--
-- Allocated units are requests of pods that are bound to the node and have not finished, and devices of claims. A node that accepts no pods has no
-- free units. Never add sources, because each is complete, nor resources: the resource gpu is all names together, in GPUs, while pods are listed. A
-- device that Koordinator allocates in part is not free under its other names. Koordinator's Device objects name such devices; without them, their
-- number is at least the GPUs that requests on the node fill.
--
-- grain:  cluster, source, node_name, resource, start_at
-- reads:  day.accelerator_resource, day.allocatable, day.demand_step, day.gpu_allocatable, day.gpu_request, day.host_amount, day.request, facts.device_capacity
-- source: day.request, day.allocatable
-- columns:
--   resource           extended resource, <class>.deviceclass.resource.k8s.io/devices, or gpu: GPUs under any name
--   schedulable_units  allocatable units, allocated or free; 0 on a node that accepts no pods
--   free_units         free units
--   cpu_cores          cores requested by pods with GPUs on the node; only for the resource gpu
--   host_memory_bytes  memory of the node requested by these pods; only for the resource gpu
with advertised as (
    from day.allocatable
    union all by name
    select * replace ('gpu' as resource)
    from day.gpu_allocatable
),

koordinator_node as (
    select distinct columns('^(cluster|source|node_name)$')
    from advertised
    where starts_with(resource, 'koordinator.sh/gpu')
),

-- Names of whole GPUs on nodes whose GPUs Koordinator also advertises.
doubled as (
    select distinct advertised.* similar to '^(cluster|source|node_name|resource)$'
    from advertised
    inner join day.accelerator_resource as name
        using (cluster, resource)
    semi join koordinator_node
        using (cluster, source, node_name)
    where name.unit_gpus = 1
),

requested as (
    select * replace (counted_resource as resource)
    from day.request
    union all by name
    select
        gpu.* replace ('gpu' as resource),
        -- A pod with claims and requests has several rows here.
        if(rank() over same_pod = 1, host.cpu_cores, null) as cpu_cores,
        if(rank() over same_pod = 1, host.host_memory_bytes, null) as host_memory_bytes
    from day.gpu_request as gpu
    left join day.host_amount as host
        on gpu.cluster = host.cluster and gpu.pod_uid = host.pod_uid and host.pod_uid != ''
    window same_pod as (partition by gpu.cluster, gpu.source, gpu.pod_uid order by gpu.is_claim, gpu.resource)
),

-- Devices from Koordinator's objects, else the GPUs of all pods on the node.
touched as (
    select
        *,
        'snapshot' as source,
        is_healthy and allocated_core_percent = 0 and coalesce(allocated_memory_ratio_percent, 0) = 0 as is_whole
    from facts.device_capacity
    where device_type = 'gpu'
),

allocated as (
    select requested.*
    from requested
    anti join doubled
        using (cluster, source, node_name, resource)
    where stage in ('bound', 'placed') and node_name != ''
    union all by name
    select
        doubled.*,
        requested.effective_units,
        requested.start_at,
        requested.end_at
    from doubled
    inner join requested
        using (cluster, source, node_name)
    anti join touched
        using (cluster, source, node_name)
    where requested.resource = 'gpu' and requested.stage in ('bound', 'placed')
    union all by name
    select
        doubled.*,
        1 as effective_units,
        touched.start_at,
        touched.end_at
    from doubled
    inner join touched
        using (cluster, source, node_name)
    where not touched.is_whole
),

-- Times with a list of pods; adjacent steps become one.
watched as (
    from day.demand_step
    where resource = 'gpu' and bound_pending_pod_count is not null
),

change as (
    select
        columns('^(cluster|source|node_name|resource)$'),
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        effective_units as allocated,
        columns('^(cpu_cores|host_memory_bytes)$'),
        (effective_units is null and resource = 'gpu')::bigint as unsized
    from allocated
    union all by name
    select
        columns('^(cluster|source|node_name|resource)$'),
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        if(state = 'schedulable', allocatable_units, 0) as schedulable,
        allocatable_units + unhealthy_units as allocatable,
        (state = 'cordoned')::bigint as cordoned,
        (state = 'not_ready')::bigint as not_ready,
        (state = 'tainted')::bigint as tainted,
        if(state is null, 0, unhealthy_units) as unhealthy,
        if(state is null, 0, 1) as advertised_count
    from advertised
    union all by name
    select
        node.*,
        'gpu' as resource,
        unnest([{ 'changed_at': watch.start_at, 'sign': 1 }, { 'changed_at': watch.end_at, 'sign': -1 }], recursive := true),
        1 as watches
    from (
        select distinct columns('^(cluster|source|node_name)$')
        from day.gpu_allocatable
    ) as node
    inner join merged_runs(watched, '^(cluster|source)$') as watch
        using (cluster, source)
),

summed as (
    select
        columns('^(cluster|source|node_name|resource|changed_at)$'),
        sum(sign * columns(* exclude (cluster, source, node_name, resource, changed_at, sign)))
    from change
    group by all
),

running as (
    select
        columns('^(cluster|source|node_name|resource)$'),
        changed_at as start_at,
        lead(changed_at) over in_order as end_at,
        coalesce(round(sum(columns(* exclude (cluster, source, node_name, resource, changed_at))) over in_order, 9) + 0, 0)
    from summed
    window in_order as (partition by cluster, source, node_name, resource order by changed_at)
)

select
    running.* similar to '^(cluster|source|node_name|resource|start_at|end_at|cpu_cores|host_memory_bytes)$',
    running.schedulable::double as schedulable_units,
    -- Sums of shares differ in the last digits; a fraction of a device is not a free device.
    greatest(0, if(doubled.resource is null, round(running.schedulable - running.allocated, 9), floor(running.schedulable - running.allocated + 1e-9)))::double
        as free_units,
    round(greatest(0, running.allocatable - greatest(running.schedulable, running.allocated)), 9)::double as unavailable_units,
    case
        when running.not_ready > 0 then 'not_ready'
        when running.cordoned > 0 then 'cordoned'
        when running.tainted > 0 then 'tainted'
        when running.unhealthy > 0 then 'unhealthy'
        else ''
    end as unavailable_state
from running
left join doubled
    using (cluster, source, node_name, resource)
where
    running.advertised_count > 0
    and running.end_at is not null
    and (running.resource != 'gpu' or (running.watches > 0 and running.unsized = 0))
