-- Allocatable units of each accelerator resource on each node, and whether the scheduler could place pods there, from kube-state-metrics.
--
-- Several kube-state-metrics report the same units, which count once.
--
-- grain:  cluster, node_name, resource, start_at
-- reads:  day.accelerator_resource, day.kube_series, lake.sample
-- source: kube_node_status_allocatable, kube_node_status_capacity, kube_node_status_condition, kube_node_spec_unschedulable
-- columns:
--   state  schedulable, cordoned or not_ready; null where unknown
with reported as (
    select
        series.*,
        sample.value,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where
        series.signal in ('kube_node_status_allocatable', 'kube_node_status_capacity', 'kube_node_status_condition', 'kube_node_spec_unschedulable')
),

advertised as (
    select
        reported.* exclude (resource),
        name.resource,
        name.is_opencosts
    from reported
    inner join day.accelerator_resource as name
        on
            reported.cluster = name.cluster
            and reported.resource = name.written_as
),

bound as (
    select columns('^(cluster|node_name|resource|is_opencosts|start_at|end_at)$')
    from advertised
    union by name
    select
        advertised.* similar to '^(cluster|node_name|resource|is_opencosts)$',
        reported.* similar to '^(start_at|end_at)$'
    from advertised
    inner join reported
        using (cluster, node_name)
    where reported.resource = ''
),

valued as (
    select
        part.*,
        max(advertised.value) filter (where advertised.signal = 'kube_node_status_allocatable') as allocatable_units,
        greatest(0, max(advertised.value) - allocatable_units) as unhealthy_units
    from between_edges(bound, '^(cluster|node_name|resource|is_opencosts)$') as part
    inner join advertised
        using (cluster, node_name, resource)
    where
        part.start_at >= advertised.start_at
        and part.start_at < advertised.end_at
    group by all
    having allocatable_units is not null
)

select
    valued.*,
    case
        when bool_or(reported.signal = 'kube_node_status_condition' and reported.value = 0) then 'not_ready'
        when bool_or(reported.signal = 'kube_node_spec_unschedulable' and reported.value = 1) then 'cordoned'
        when count(distinct reported.signal) = 2 then 'schedulable'
    end as state
from valued
left join reported
    on
        valued.cluster = reported.cluster
        and valued.node_name = reported.node_name
        and reported.resource = ''
        and valued.start_at >= reported.start_at
        and valued.start_at < reported.end_at
group by all
