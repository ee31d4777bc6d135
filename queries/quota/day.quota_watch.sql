-- Time with known pods or Workloads of a cluster: by snapshots, or scrapes of kube-state-metrics. At other times, demand is unknown, not 0.
--
-- grain:  cluster, watched, start_at
-- reads:  day.kube_watch, day.state_snapshot
-- source: kube_pod_info; gpureport snapshot, gpureport import --kubernetes
with step as (
    select
        cluster,
        'pods' as watched,
        start_at,
        end_at
    from day.kube_watch
    union by name
    select
        cluster,
        if(kind = 'pods', 'pods', 'workloads') as watched,
        observed_at as start_at,
        stands_until_at as end_at
    from day.state_snapshot
    where kind in ('pods', 'workloads.kueue.x-k8s.io')
)

select *
from merged_runs(step, '^(cluster|watched)$')
