-- Time in which the free accelerators of a node fit no pod that the scheduler refused, with the cause.
--
-- The smallest refused request decides. If it is larger than the node's free units, the node is fragmented; if it is larger than any node, the cause
-- is larger_than_any_node. Otherwise the cause comes from the scheduler's message, which does not name the node: cpu, memory, taint, affinity or
-- refused. Pods that the scheduler has not refused, such as gated pods, cause no fragmentation. Koordinator's shares of devices are not included:
-- facts.device_capacity has the free capacity of each device.
--
-- grain:  cluster, node_name, resource, source, start_at
-- reads:  day.node_capacity, day.request, lake.pod
-- source: Pod conditions PodScheduled; kube_pod_status_unschedulable; day.node_capacity
-- columns:
--   free_units    free units of the node
with refused as (
    from day.request
    where stage = 'refused' and not starts_with(resource, 'koordinator.sh/')
),

refusal as (
    select
        columns('^(cluster|pod_uid)$'),
        arg_max(
            case
                when contains(unschedulable_message, 'Insufficient cpu') then 'cpu'
                when contains(unschedulable_message, 'Insufficient memory') then 'memory'
                when contains(unschedulable_message, 'untolerated taint') then 'taint'
                when contains(unschedulable_message, 'affinity/selector') then 'affinity'
                else 'refused'
            end,
            observed_at
        ) as cause
    from lake.pod
    where unschedulable_message != ''
    group by all
),

-- The smallest pending request: if it does not fit, no request fits. Runs of one size, because intervals by pod and node would be many times as many.
wanted as (
    select
        run.*,
        min(refused.effective_units) as wanted_units,
        coalesce(arg_min(refusal.cause, (refused.effective_units, refused.pod_uid)), 'refused') as cause
    from between_edges(refused, '^(cluster|source|resource)$') as run
    inner join refused
        using (cluster, source, resource)
    left join refusal
        using (cluster, pod_uid)
    where
        run.start_at >= refused.start_at
        and run.start_at < refused.end_at
        and refused.effective_units > 0
    group by all
),

largest as (
    select
        columns('^(cluster|source|resource)$'),
        max(schedulable_units) as schedulable_units
    from day.node_capacity
    group by all
)

select
    free.* exclude (start_at, end_at, schedulable_units, unavailable_units, unavailable_state),
    greatest(free.start_at, wanted.start_at) as start_at,
    least(free.end_at, wanted.end_at) as end_at,
    case
        when wanted.wanted_units > largest.schedulable_units then 'larger_than_any_node'
        when wanted.wanted_units > free.free_units then 'fragmented'
        else wanted.cause
    end as cause,
    wanted.wanted_units
from day.node_capacity as free
inner join merged_runs(wanted, '^(cluster|source|resource|wanted_units|cause)$') as wanted
    using (cluster, source, resource)
inner join largest
    using (cluster, source, resource)
where
    free.start_at < wanted.end_at
    and free.end_at > wanted.start_at
    and free.free_units > 0
