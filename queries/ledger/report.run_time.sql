-- Run times of pods that succeeded or failed in the window, by size of the request in GPUs.
--
-- grain:  cluster, size, outcome
-- reads:  facts.node_allocation, facts.pod_outcome, facts.pod_wait
-- params: since_at, until_at
-- source: facts.node_allocation for the end, facts.pod_wait for the start
-- columns: cluster, size, outcome, ended_pod_count, running_seconds_p50, running_seconds_p95, running_seconds_max, unknown_reasons
with ended as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        max(end_at) as ended_at
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
        max(requested_gpus) as requested_gpus,
        max(scheduled_at) as scheduled_at
    from facts.pod_wait
    group by all
),

run as (
    select
        cluster,
        size_class(started.requested_gpus) as size,
        reported.outcome,
        epoch_ms(ended.ended_at - if(started.scheduled_at > ended.ended_at, ended.ended_at, started.scheduled_at)) / 1000 as running_seconds
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
    quantile_cont(running_seconds, 0.5) as running_seconds_p50,
    quantile_cont(running_seconds, 0.95) as running_seconds_p95,
    max(running_seconds) as running_seconds_max,
    unknown_reasons([
        (name, if(running_seconds_max is null, 'not_collected', null))
        for name in ['running_seconds_p50', 'running_seconds_p95', 'running_seconds_max']
    ]) as unknown_reasons
from run
group by all
