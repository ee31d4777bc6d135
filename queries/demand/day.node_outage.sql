-- Outages of nodes: not ready or cordoned.
--
-- A state in a snapshot is valid until the next one, which may not list the node any more, for 15 minutes at most.
--
-- grain:  cluster, node_name, start_at, end_at, cause
-- reads:  day.state_snapshot, lake.node, lake.sample, lake.series
-- source: kube_node_status_condition, kube_node_spec_unschedulable; Node status
-- columns:
--   cause  not_ready or cordoned
with series as (
    select
        cluster,
        series_id,
        coalesce(labels['exported_node'], labels['node'], '') as node_name,
        if(signal = 'kube_node_status_condition', 'not_ready', 'cordoned') as cause,
        if(signal = 'kube_node_status_condition', 0, 1) as bad_count
    from lake.series
    where signal in ('kube_node_spec_unschedulable', 'kube_node_status_condition')
)

select
    columns('^(cluster|node_name|cause)$'),
    sample.seen_at::timestamp as start_at,
    held_until(sample.seen_at, sample.held_seconds) as end_at
from series
inner join lake.sample
    using (cluster, series_id)
where sample.value = series.bad_count and sample.held_seconds > 0
union by name
select
    columns('^(cluster|node_name)$'),
    if(node.is_ready, 'cordoned', 'not_ready') as cause,
    snapshot.observed_at as start_at,
    snapshot.stands_until_at as end_at
from lake.node as node
inner join day.state_snapshot as snapshot
    using (cluster, observed_at)
where snapshot.kind = 'nodes' and (not node.is_ready or node.is_unschedulable)
