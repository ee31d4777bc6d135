-- Time in which the pods of a cluster are known: by snapshots, and while kube-state-metrics was scraped. Outside of it nothing
-- is known of demand, which is not none.
--
-- grain:  cluster, watched, start_at
-- reads:  day.kube_series, day.state_snapshot, lake.sample
-- params:
-- source: kube_pod_info; gpureport snapshot, gpureport import --kubernetes
-- columns:
--   watched   pods, or workloads of Kueue
with step as (
    select distinct
        sample.cluster,
        'pods' as watched,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from lake.sample
    inner join day.kube_series as listing
        using (cluster, series_id)
    where listing.signal = 'kube_pod_info'
    union by name
    select
        cluster,
        if(kind = 'pods', 'pods', 'workloads') as watched,
        observed_at as start_at,
        stands_until_at as end_at
    from day.state_snapshot
    where kind in ('pods', 'workloads.kueue.x-k8s.io')
)

select
    cluster,
    watched,
    min(start_at) as start_at,
    max(end_at) as end_at
from numbered_runs(step, (cluster, watched))
group by cluster, watched, run_number
