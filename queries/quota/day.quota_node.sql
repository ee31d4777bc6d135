-- Allocatable extended resources of nodes over time, from kube-state-metrics, else from snapshots.
--
-- grain:  cluster, node_name, resource, start_at
-- reads:  day.accelerator_resource, day.kube_series, day.state_snapshot, lake.node, lake.sample
-- source: kube_node_status_allocatable; Node status.allocatable
with offer as (
    select
        offer.* exclude (resource),
        coalesce(name.resource, case
            when offer.resource like 'gpu_intel_com_%' then 'gpu.intel.com/' || offer.resource[15:]
            else regexp_replace(offer.resource, '^([a-z]+)_(com|sh|ai|io)_', '\1.\2/')
        end) as resource
    from day.kube_series as offer
    left join day.accelerator_resource as name
        on
            offer.cluster = name.cluster
            and offer.resource = name.written_as
    where offer.signal = 'kube_node_status_allocatable' and regexp_matches(offer.resource, '_(com|sh|ai|io)_')
),

reported as (
    select
        offer.*,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at,
        sample.value as amount
    from offer
    inner join lake.sample
        using (cluster, series_id)
),

listed as (
    select
        node.*,
        unnest(map_entries(node.allocatable)) as offered,
        snapshot.observed_at as start_at,
        snapshot.stands_until_at as end_at
    from lake.node
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'nodes'
        and node.cluster not in (select reported.cluster from reported)
),

step as (
    select
        columns('^(cluster|node_name|resource|start_at)$'),
        max(end_at) as end_at,
        max(amount) as amount
    from reported
    group by all
    union all by name
    select
        cluster,
        node_name,
        offered.key as resource,
        start_at,
        end_at,
        offered.value as amount
    from listed
    where contains(offered.key, '/') and offered.value is not null
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

select
    columns('^(cluster|node_name|resource)$'),
    min(start_at) as start_at,
    max(end_at) as end_at,
    amount as allocatable_native
from numbered_runs(marked, (cluster, node_name, resource, amount))
group by cluster, node_name, resource, amount, run_number
