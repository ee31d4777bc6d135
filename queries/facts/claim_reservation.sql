-- Who reserved each resource claim, and when: intervals from looks at the claims, and what kube-state-metrics says of pods.
--
-- A pod reserves a claim when it is bound; its end ends the reservation, though the claim may go on. Groups of pods reserve claims too,
-- and are no pods: nothing but the looks tells from when to when.
--
-- grain:  cluster, namespace, claim, claim_uid, consumer_resource, consumer_uid, start_at
-- reads:  clean.claim_series, clean.state_look, lake.claim_consumer, lake.pod
-- params:
-- source: ResourceClaim status.reservedFor and the pods' own times; kube_pod_resourceclaim_info
-- columns:
--   cluster            cluster name
--   namespace          namespace of the claim
--   claim              claim's name
--   claim_uid          claim's uid; '' where kube-state-metrics tells of it, which knows the name alone
--   consumer_resource  pods, or podgroups
--   consumer           consumer's name
--   consumer_uid       consumer's uid
--   start_at           UTC, start of the reservation
--   end_at             UTC, its end, outside it
with seen as (
    select
        consumer.cluster,
        consumer.namespace,
        consumer.claim,
        consumer.claim_uid,
        consumer.consumer_resource,
        consumer.consumer,
        consumer.consumer_uid,
        look.observed_at,
        look.previous_at,
        look.stands_until_at,
        coalesce(lag(look.stands_until_at) over (
            partition by consumer.cluster, consumer.claim_uid, consumer.consumer_uid
            order by look.observed_at
        ) < look.observed_at, true) as is_new
    from lake.claim_consumer as consumer
    inner join clean.state_look as look
        on
            consumer.cluster = look.cluster
            and look.kind = 'resourceclaims.resource.k8s.io'
            and consumer.observed_at = look.observed_at
),

numbered as (
    select
        *,
        count(*) filter (where is_new) over (
            partition by cluster, claim_uid, consumer_uid
            order by observed_at
            rows between unbounded preceding and current row
        ) as number
    from seen
),

stretch as (
    select
        cluster,
        namespace,
        claim,
        claim_uid,
        consumer_resource,
        consumer,
        consumer_uid,
        min(observed_at) as first_at,
        max(observed_at) as last_at,
        arg_min(previous_at, observed_at) as previous_at,
        max(stands_until_at) as stands_until_at,
        lag(max(stands_until_at)) over (
            partition by cluster, claim_uid, consumer_uid
            order by min(observed_at)
        ) as before_until_at
    from numbered
    group by cluster, namespace, claim, claim_uid, consumer_resource, consumer, consumer_uid, number
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
    stretch.cluster,
    stretch.namespace,
    stretch.claim,
    stretch.claim_uid,
    stretch.consumer_resource,
    stretch.consumer,
    stretch.consumer_uid,
    if(
        pod.scheduled_at >= coalesce(stretch.previous_at, stretch.before_until_at, pod.scheduled_at),
        least(stretch.first_at, pod.scheduled_at),
        stretch.first_at
    ) as start_at,
    least(stretch.stands_until_at, if(pod.finished_at > stretch.last_at, pod.finished_at, null)) as end_at
from stretch
left join pod
    on
        stretch.cluster = pod.cluster
        and stretch.consumer_uid = pod.pod_uid
union all by name
select
    cluster,
    namespace,
    claim,
    '' as claim_uid,
    'pods' as consumer_resource,
    pod as consumer,
    pod_uid as consumer_uid,
    start_at,
    end_at
from clean.claim_series
