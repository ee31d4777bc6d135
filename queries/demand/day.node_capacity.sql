-- Allocated and free units of each accelerator resource on each node in steps, as the scheduler counts them.
--
-- Requests of pods that are bound to the node and have not finished, and devices of claims. A node that takes no pods has nothing left to give.
-- Each source stands alone: never add sources.
--
-- grain:  cluster, source, node_name, resource, start_at
-- reads:  day.claim_request, day.kube_allocatable, day.kube_request, day.snapshot_allocatable, day.snapshot_request
-- params:
-- source: day.snapshot_request, day.claim_request and day.snapshot_allocatable; day.kube_request and day.kube_allocatable
-- columns:
--   cluster            cluster name
--   source             snapshot or kube-state-metrics
--   node_name          node
--   resource           extended resource, or <class>.deviceclass.resource.k8s.io/devices
--   start_at           UTC, start of the step
--   end_at             UTC, its end, outside it
--   schedulable_units  units that may be given out, taken or not; 0 on a node that takes no pods
--   free_units         what is left
with held as (
    select
        cluster,
        'snapshot' as source,
        node_name,
        resource,
        effective_units,
        start_at,
        end_at
    from day.snapshot_request
    where stage in ('bound', 'placed') and node_name != ''
    union all by name
    select
        cluster,
        'snapshot' as source,
        node_name,
        resource,
        effective_units,
        start_at,
        end_at
    from day.claim_request
    where stage in ('bound', 'placed') and node_name != ''
    union all by name
    select
        cluster,
        'kube-state-metrics' as source,
        node_name,
        resource,
        effective_units,
        start_at,
        end_at
    from day.kube_request
    where stage in ('bound', 'placed') and node_name != ''
),

offered as (
    select
        cluster,
        'snapshot' as source,
        node_name,
        resource,
        state,
        allocatable_units,
        start_at,
        end_at
    from day.snapshot_allocatable
    union all by name
    select
        cluster,
        'kube-state-metrics' as source,
        node_name,
        resource,
        state,
        allocatable_units,
        start_at,
        end_at
    from day.kube_allocatable
),

change as (
    select
        cluster,
        source,
        node_name,
        resource,
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        effective_units as held,
        0 as schedulable,
        0 as offers
    from held
    union all by name
    select
        cluster,
        source,
        node_name,
        resource,
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        0 as held,
        if(state = 'schedulable', allocatable_units, 0) as schedulable,
        if(state is null, 0, 1) as offers
    from offered
),

summed as (
    select
        cluster,
        source,
        node_name,
        resource,
        changed_at,
        sum(sign * held) as held,
        sum(sign * schedulable) as schedulable,
        sum(sign * offers) as offers
    from change
    group by all
),

running as (
    select
        cluster,
        source,
        node_name,
        resource,
        changed_at as start_at,
        lead(changed_at) over in_order as end_at,
        sum(columns(['held', 'schedulable', 'offers'])) over in_order
    from summed
    window in_order as (partition by cluster, source, node_name, resource order by changed_at)
)

select
    cluster,
    source,
    node_name,
    resource,
    start_at,
    end_at,
    schedulable::double as schedulable_units,
    greatest(0, schedulable - held)::double as free_units
from running
where offers > 0 and end_at is not null
