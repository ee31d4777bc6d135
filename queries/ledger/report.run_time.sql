-- Run times of pods that succeeded or failed in the window, by GPUs requested.
--
-- Pods with an unknown start count from their first known allocation. at_least lists the figures that such pods may raise.
--
-- grain:  cluster, size, outcome
-- reads:  facts.node_allocation, facts.pod_outcome, facts.pod_wait
-- params: since_at, until_at
-- source: facts.node_allocation for the end, facts.pod_wait for the start
-- columns: cluster, size, outcome, ended_pod_count, running_seconds_p50, running_seconds_p95, running_seconds_max, at_least
with ended as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        min(start_at) as began_at,
        max(end_at) as ended_at,
        max(gpu_count) as gpu_count
    from facts.node_allocation
    where state = 'allocated' and pod != ''
    group by all
    having ended_at >= $since_at and ended_at < $until_at
),

reported as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        arg_max(outcome, seen_at) as outcome
    from facts.pod_outcome
    group by all
),

started as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        max(columns('^(requested_gpus|scheduled_at)$'))
    from facts.pod_wait
    group by all
),

run as (
    select
        cluster,
        size_class(coalesce(started.requested_gpus, ended.gpu_count)) as size,
        reported.outcome,
        epoch_ms(ended.ended_at - least(coalesce(started.scheduled_at, ended.began_at), ended.ended_at)) / 1000 as least_seconds,
        if(started.scheduled_at is null, 1e18, least_seconds) as most_seconds
    from ended
    inner join reported
        using (cluster, namespace, pod, pod_uid)
    left join started
        using (cluster, namespace, pod, pod_uid)
    where reported.outcome != 'running'
)

select
    columns('^(cluster|size|outcome)$'),
    count(*) as ended_pod_count,
    quantile_cont(least_seconds, 0.5) as running_seconds_p50,
    quantile_cont(least_seconds, 0.95) as running_seconds_p95,
    max(least_seconds) as running_seconds_max,
    concat_ws(
        ', ',
        if(quantile_cont(most_seconds, 0.5) > running_seconds_p50, 'p50', null),
        if(quantile_cont(most_seconds, 0.95) > running_seconds_p95, 'p95', null),
        if(max(most_seconds) > running_seconds_max, 'max', null)
    ) as at_least
from run
group by all
