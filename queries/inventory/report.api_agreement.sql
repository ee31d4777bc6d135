-- Snapshots compared with counts of the API server, and their differences.
--
-- Compared are: status.used of ResourceQuotas with requests, claims with ResourceSlices, the scheduler's refusals with free units. Lists of one
-- snapshot are seconds apart: a change between them is one difference.
--
-- grain:  cluster, compared, object, resource
-- reads:  facts.quota_agreement, facts.state_agreement
-- params: since_at, until_at
-- columns: cluster, compared, object, resource, snapshot_count, differing_snapshot_count, difference_at, reported_units, counted_units
with beside as (
    from facts.quota_agreement
    union all by name
    select *
    from facts.state_agreement
)

select
    cluster,
    coalesce(compared, 'all') as compared,
    coalesce(columns('^(object|resource)$'), '') as "\0",
    max(count(distinct observed_at)) over (partition by cluster, coalesce(compared, 'all')) as snapshot_count,
    count(distinct observed_at) filter (where differing_count > 0) as differing_snapshot_count,
    min(observed_at) filter (where differing_count > 0) as difference_at,
    if(beside.object is null, null, arg_min(reported_units, observed_at)) as reported_units,
    if(beside.object is null, null, arg_min(counted_units, observed_at)) as counted_units
from beside
where is_in_period(hour_start_at, $since_at, $until_at)
group by grouping sets ((cluster), (cluster, compared, object, resource))
