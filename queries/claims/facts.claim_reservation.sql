-- Reservations of each resource claim over time, from snapshots of claims and kube-state-metrics' pods.
--
-- A pod reserves a claim when it is bound. The reservation ends with the pod; the claim may go on. Groups of pods also reserve claims: only snapshots
-- show their intervals.
--
-- grain:  cluster, namespace, claim, claim_uid, consumer_resource, consumer_uid, start_at
-- reads:  day.claim_series, day.state_snapshot, lake.claim_consumer, lake.pod
-- source: ResourceClaim status.reservedFor and the pods' own times; kube_pod_resourceclaim_info
-- columns: cluster, namespace, claim, claim_uid, consumer_resource, consumer, consumer_uid, start_at, end_at
--   claim_uid          claim's uid; '' from kube-state-metrics, which has only the name
-- Most reservations are in many snapshots: equal ones are grouped first, and only groups that lack snapshots are split into runs.
with state as (
    select
        consumer.* similar to '^(cluster|namespace|claim|claim_uid|consumer_resource|consumer|consumer_uid)$',
        snapshot.* similar to '^(kind|run_number)$',
        list(snapshot.snapshot_number order by snapshot.snapshot_number) as snapshot_numbers
    from lake.claim_consumer as consumer
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where snapshot.kind = 'resourceclaims.resource.k8s.io'
    group by all
),

seen as (
    select *
    from snapshot_intervals(state, day.state_snapshot)
),

step as (
    select
        columns('^(cluster|namespace|claim|claim_uid|consumer_resource|consumer|consumer_uid)$'),
        min(start_at) as first_at,
        max(last_at) as last_at,
        arg_min_null(previous_at, start_at) as previous_at,
        max(end_at) as stands_until_at,
        lag(max(end_at)) over (
            partition by cluster, claim_uid, consumer_uid
            order by min(start_at)
        ) as before_until_at
    from numbered_runs(seen, (cluster, claim_uid, consumer_uid))
    group by cluster, namespace, claim, claim_uid, consumer_resource, consumer, consumer_uid, run_number
),

pod as (
    select
        cluster,
        pod_uid,
        min(scheduled_at)::timestamp as scheduled_at,
        max(finished_at)::timestamp as finished_at
    from lake.pod
    group by cluster, pod_uid
)

select
    step.* exclude (first_at, last_at, previous_at, stands_until_at, before_until_at),
    if(
        pod.scheduled_at >= coalesce(step.previous_at, step.before_until_at, pod.scheduled_at),
        least(step.first_at, pod.scheduled_at),
        step.first_at
    ) as start_at,
    least(step.stands_until_at, if(pod.finished_at > step.last_at, pod.finished_at, null)) as end_at
from step
left join pod
    on
        step.cluster = pod.cluster
        and step.consumer_uid = pod.pod_uid
union all by name
select
    * exclude (pod, pod_uid),
    '' as claim_uid,
    'pods' as consumer_resource,
    pod as consumer,
    pod_uid as consumer_uid
from day.claim_series
