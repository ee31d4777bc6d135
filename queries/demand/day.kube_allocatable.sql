-- Allocatable units of each accelerator resource on each node, and whether the scheduler could place pods there, from
-- kube-state-metrics.
--
-- Several kube-state-metrics say the same.
--
-- grain:  cluster, node_name, resource, start_at
-- reads:  day.accelerator_resource, day.kube_series, lake.sample
-- params:
-- source: kube_node_status_allocatable, kube_node_status_condition, kube_node_spec_unschedulable
-- columns:
--   state  schedulable, cordoned or not_ready; null where unknown
with told as (
    select
        series.*,
        sample.value,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where series.signal in ('kube_node_status_allocatable', 'kube_node_status_condition', 'kube_node_spec_unschedulable')
),

offered as (
    select
        told.* exclude (resource),
        name.resource,
        name.is_opencosts,
        told.value as allocatable_units
    from told
    inner join day.accelerator_resource as name
        on
            told.cluster = name.cluster
            and told.resource = name.written_as
    where told.signal = 'kube_node_status_allocatable'
),

bound as (
    select
        cluster,
        node_name,
        resource,
        is_opencosts,
        unnest([start_at, end_at]) as changed_at
    from offered
    union
    select
        offered.cluster,
        offered.node_name,
        offered.resource,
        offered.is_opencosts,
        unnest([told.start_at, told.end_at]) as changed_at
    from offered
    inner join told
        using (cluster, node_name)
    where told.signal != 'kube_node_status_allocatable'
),

piece as (
    select
        *,
        changed_at as start_at,
        lead(changed_at) over (partition by cluster, node_name, resource order by changed_at) as end_at
    from bound
),

valued as (
    select
        piece.* exclude (changed_at),
        max(offered.allocatable_units) as allocatable_units
    from piece
    inner join offered
        using (cluster, node_name, resource)
    where
        piece.start_at >= offered.start_at
        and piece.start_at < offered.end_at
        and piece.end_at is not null
    group by all
),

judged as (
    select
        valued.*,
        case
            when bool_or(told.signal = 'kube_node_status_condition' and told.value = 0) then 'not_ready'
            when bool_or(told.signal = 'kube_node_spec_unschedulable' and told.value = 1) then 'cordoned'
            when count(distinct told.signal) = 2 then 'schedulable'
        end as state
    from valued
    left join told
        on
            valued.cluster = told.cluster
            and valued.node_name = told.node_name
            and told.signal != 'kube_node_status_allocatable'
            and valued.start_at >= told.start_at
            and valued.start_at < told.end_at
    group by all
)

select *
from judged
