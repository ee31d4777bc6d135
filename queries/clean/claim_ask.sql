-- Which devices each pod asked for by resource claims, and how far it had come, as looks at Kubernetes' state tell it.
--
-- A class is counted as quotas name it. Of alternatives (firstAvailable) the one that was taken counts, before that the first. A claim that
-- several pods use counts with the first of them, one without pods with none. Claims for watching only take nothing; those that the
-- scheduler makes for extended resources are counted as these. A pod whose claim is not made yet does not say what it asks for.
--
-- grain:  cluster, pod_uid, resource, start_at
-- reads:  clean.state_look, lake.claim, lake.claim_device, lake.pod
-- params:
-- source: ResourceClaim spec and status; Pod status.resourceClaimStatuses
-- columns:
--   cluster          cluster name
--   namespace        namespace of the pod or claim
--   pod              name of the pod; '' of a claim without one
--   pod_uid          its uid; of a claim without a pod the claim's
--   resource         <class>.deviceclass.resource.k8s.io/devices
--   device_class     the class
--   node_name        node that it is bound to, '' while it is to none
--   phase            Pending, Running or Unknown; '' of a claim without a pod
--   stage            gated, unscheduled, refused (the scheduler found no place), bound (and not running yet) or placed
--   effective_units  devices; null where all that fit are asked for
--   claim_units      the same, what others share with it counted too
--   start_at         UTC, the look
--   end_at           UTC, when it no longer stands
with look as (
    select
        cluster,
        observed_at,
        stands_until_at
    from clean.state_look
    where kind = 'resourceclaims.resource.k8s.io'
),

entry as (
    select
        cluster,
        observed_at,
        namespace,
        claim,
        claim_uid,
        is_allocated,
        unnest(requests) as asked,
        generate_subscripts(requests, 1) as number
    from lake.claim
    where not is_extended_resource
),

given as (
    select
        cluster,
        observed_at,
        claim_uid,
        request,
        subrequest,
        count(*) as device_count
    from lake.claim_device
    where not is_admin_access
    group by all
),

-- One alternative of each request: the one that was taken, else the first.
request as (
    select
        entry.cluster,
        entry.observed_at,
        entry.namespace,
        entry.claim,
        entry.claim_uid,
        entry.is_allocated,
        entry.asked.device_class,
        if(entry.is_allocated, coalesce(given.device_count, 0), entry.asked.device_count) as units
    from entry
    left join given
        on
            entry.cluster = given.cluster
            and entry.observed_at = given.observed_at
            and entry.claim_uid = given.claim_uid
            and entry.asked.request = given.request
            and entry.asked.subrequest = given.subrequest
    where not entry.asked.is_admin_access and (not entry.is_allocated or given.device_count is not null)
    qualify row_number() over (
        partition by entry.cluster, entry.observed_at, entry.claim_uid, entry.asked.request
        order by entry.number
    ) = 1
),

sized as (
    select
        cluster,
        observed_at,
        namespace,
        claim,
        claim_uid,
        is_allocated,
        device_class,
        if(count(*) = count(units), sum(units), null) as units
    from request
    group by all
),

named as (
    select
        cluster,
        observed_at,
        namespace,
        pod,
        pod_uid,
        node_name,
        phase,
        case
            when node_name != '' then if(phase = 'Pending', 'bound', 'placed')
            when unschedulable_reason = 'SchedulingGated' then 'gated'
            when unschedulable_at is not null then 'refused'
            else 'unscheduled'
        end as stage,
        unnest(map_values(resource_claims)) as claim
    from lake.pod
    where phase in ('Pending', 'Running', 'Unknown')
),

-- A group of pods that reserved a claim is none of them.
used as (
    select
        sized.*,
        named.pod,
        named.pod_uid,
        named.node_name,
        named.phase,
        named.stage,
        row_number() over (
            partition by sized.cluster, sized.observed_at, sized.claim_uid, sized.device_class
            order by named.stage = 'placed' desc, named.pod_uid
        ) = 1 as is_first
    from sized
    left join named
        on
            sized.cluster = named.cluster
            and sized.observed_at = named.observed_at
            and sized.namespace = named.namespace
            and sized.claim = named.claim
    where sized.is_allocated or named.pod_uid is not null
)

select
    used.cluster,
    used.namespace,
    coalesce(used.pod, '') as pod,
    coalesce(used.pod_uid, used.claim_uid) as pod_uid,
    used.device_class || '.deviceclass.resource.k8s.io/devices' as resource,
    used.device_class,
    coalesce(any_value(used.node_name), '') as node_name,
    coalesce(any_value(used.phase), '') as phase,
    coalesce(any_value(used.stage), 'placed') as stage,
    if(
        count(*) filter (where used.is_first) = count(used.units) filter (where used.is_first),
        coalesce(sum(used.units) filter (where used.is_first), 0),
        null
    )::double as effective_units,
    if(count(*) = count(used.units), sum(used.units), null)::double as claim_units,
    look.observed_at as start_at,
    look.stands_until_at as end_at
from used
inner join look
    on
        used.cluster = look.cluster
        and used.observed_at = look.observed_at
group by all
