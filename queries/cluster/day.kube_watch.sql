-- Time in which each kube-state-metrics was scraped, by any pod that it listed.
--
-- grain:  cluster, target, start_at
-- reads:  day.kube_series, lake.sample
-- source: kube_pod_info
with step as (
    select distinct
        listing.cluster,
        listing.target,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from lake.sample
    inner join day.kube_series as listing
        using (cluster, series_id)
    where listing.signal = 'kube_pod_info'
)

select
    *,
    lead(start_at) over (partition by cluster, target order by start_at) as next_start_at
from merged_runs(step, '^(cluster|target)$')
