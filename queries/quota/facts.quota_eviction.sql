-- Evicted workloads (Kueue) or pods (KAI) of each quota per hour, where its system counts them.
--
-- KAI counts by pod group. The group's queue is the queue that its pods name. KAI's counters with the label uid count n pods evicted together n times
-- each. These counters are left out, because they do not contain n.
--
-- revision: 6
-- grain:  cluster, system, quota, hour_start_at
-- reads:  day.quota_pod, day.quota_series, lake.sample, lake.series
-- source: kueue_evicted_workloads_total; kai_pod_group_evicted_pods_total
-- columns: cluster, system, quota, hour_start_at, evicted_count
--   hour_start_at  UTC hour in which the counter grew
--   evicted_count  workloads or pods evicted; a restarted counter counts from 0
with pod_group as (
    select
        columns('^(cluster|namespace|scheduling_group)$'),
        min(kai_queue) as quota
    from day.quota_pod
    where kai_queue != '' and scheduling_group != ''
    group by all
    having count(distinct kai_queue) = 1
),

-- A new count starts at 0 if the same exporter already had other counts.
grown as (
    select
        *,
        amount_native - coalesce(lag(amount_native) over (
            partition by cluster, system, quota, resource, flavor, field
            order by start_at
        ), if(start_at > min(start_at) over (partition by cluster, system), 0, null)) as growth
    from day.quota_series
    where field in ('evicted', 'pending', 'borrowing_limit', 'lending_limit')
    qualify field = 'evicted'
    union all by name
    select
        series.cluster,
        'kai' as system,
        pod_group.quota,
        sample.seen_at::timestamp as start_at,
        sample.value - coalesce(lag(sample.value) over (
            partition by series.cluster, series.series_id
            order by sample.seen_at
        ), if(sample.seen_at > min(sample.seen_at) over (partition by series.cluster, labels['job'], labels['instance']), 0, null)) as growth,
        sample.value as amount_native
    from lake.series
    inner join lake.sample
        using (cluster, series_id)
    left join pod_group
        on
            series.cluster = pod_group.cluster
            and coalesce(series.labels['exported_namespace'], series.labels['namespace']) = pod_group.namespace
            and series.labels['podgroup'] = pod_group.scheduling_group
    where series.signal like 'quota_%' and series.metric like 'kai%'
    qualify series.signal = 'quota_evicted' and pod_group.quota is not null and series.labels['uid'] is null
)

-- Evictions before the first sample belong to an earlier time.
select
    columns('^(cluster|system|quota)$'),
    date_trunc('hour', start_at) as hour_start_at,
    sum(case when growth is null then 0 when growth < 0 then amount_native else growth end)::bigint as evicted_count
from grown
group by cluster, system, quota, date_trunc('hour', start_at)
