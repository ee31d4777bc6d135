-- Allocatable extended resources of nodes over time, from kube-state-metrics, and at other times from snapshots.
--
-- grain:  cluster, node_name, resource, start_at
-- reads:  day.accelerator_resource, day.kube_series, day.state_snapshot, lake.node, lake.sample
-- source: kube_node_status_allocatable; Node status.allocatable
with series as (
    select
        series.* exclude (resource),
        coalesce(name.resource, case
            when series.resource like 'gpu_intel_com_%' then 'gpu.intel.com/' || series.resource[15:]
            else regexp_replace(series.resource, '^([a-z]+)_(com|sh|ai|io)_', '\1.\2/')
        end) as resource
    from day.kube_series as series
    left join day.accelerator_resource as name
        on
            series.cluster = name.cluster
            and series.resource = name.written_as
    where series.signal = 'kube_node_status_allocatable' and regexp_matches(series.resource, '_(com|sh|ai|io)_')
),

reported as (
    select
        series.*,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at,
        sample.value as amount
    from series
    inner join lake.sample
        using (cluster, series_id)
),

listed as (
    select
        node.*,
        unnest(map_entries(node.allocatable)) as entry,
        snapshot.observed_at as start_at,
        snapshot.stands_until_at as end_at
    from lake.node
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    -- Times with series of any node.
    anti join merged_runs(reported, '^cluster$') as covered
        on
            node.cluster = covered.cluster
            and snapshot.observed_at < covered.end_at
            and snapshot.stands_until_at > covered.start_at
    where snapshot.kind = 'nodes'
),

step as (
    select
        columns('^(cluster|node_name|resource|start_at)$'),
        max(end_at) as end_at,
        max(amount) as allocatable_native
    from reported
    group by all
    union all by name
    select
        cluster,
        node_name,
        entry.key as resource,
        start_at,
        end_at,
        entry.value as allocatable_native
    from listed
    where contains(entry.key, '/') and entry.value is not null
),

marked as (
    select
        * exclude (end_at),
        least(end_at, lead(start_at) over one) as end_at
    from step
    window one as (
        partition by cluster, node_name, resource
        order by start_at
    )
)

select *
from merged_runs(marked, '^(cluster|node_name|resource|allocatable_native)$')
