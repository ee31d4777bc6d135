-- Requests on quotas, each admitted as a whole: pods, pods of gangs, Kueue's Workloads, Volcano's PodGroups before their pods, resource claims.
--
-- Where Kueue's Workloads were collected, they count instead of its pods. A waiting workload requests in the flavor that its pods' nodes allow; a
-- workload with quota in the flavors that Kueue gave each resource. While the slice that it replaces has quota, a slice of an elastic job requests
-- the difference in the same flavor. The part that it takes over is a request of its own; so is the full count of a workload until fewer are admitted.
-- A claim counts for a ResourceQuota without scopes on its class and on the class's extended resource while it exists. Its amount is delivered from
-- its allocation on. firstAvailable is charged by the API server's rule.
--
-- grain:  cluster, system, quota, resource, flavor, request_uid, created_at
-- reads:  day.quota_above, day.quota_placement, day.quota_pod, day.quota_pod_interval, day.quota_terms, day.quota_unit, day.quota_watch, day.state_snapshot, day.workload_run, lake.claim, lake.device_class, lake.quota, lake.workload
-- source: day.quota_pod_interval; Workload, PodGroup, ResourceClaim and DeviceClass objects
-- columns:
--   pod_gpus    GPUs of the request; null for other resources
with counted as (
    select distinct cluster
    from day.quota_watch
    where watched = 'workloads'
),

-- Finished pods use no quota from the first snapshot that shows it: the remaining pods become a new request.
resized as (
    select
        run.* similar to '^(cluster|workload_uid|attempt)$',
        object.requests as left_requests,
        min(object.observed_at)::timestamp as since_at
    from day.workload_run as run
    inner join lake.workload as object
        using (cluster, workload_uid)
    where object.reserved_at is not null and object.observed_at >= run.reserved_at and coalesce(object.observed_at < run.ended_at, true)
    group by all
),

requested as (
    select
        run.* similar to '^(cluster|cluster_queue|priority|replaces)$',
        concat(run.namespace, '/', run.workload) as workload,
        concat(workload_uid, '/', attempt, if(lag(since_at) over one is null, '', '/' || since_at)) as request_uid,
        if(lag(since_at) over one is null, run.queued_at, since_at) as queued_at,
        if(lag(since_at) over one is null, run.reserved_at, since_at) as reserved_at,
        least(run.ended_at, lead(since_at) over one) as ended_at,
        if(lag(since_at) over one is null, run.waiting_counts, null) as waiting_counts,
        unnest(coalesce(left_requests, run.requests)) as part
    from day.workload_run as run
    left join resized
        using (cluster, workload_uid, attempt)
    where run.ended_at is null or run.ended_at > run.queued_at
    window one as (
        partition by cluster, workload_uid, attempt
        order by since_at
    )
),

slice as (
    select
        cluster,
        workload as replaces,
        part.pod_set,
        part.resource,
        arg_max(part.flavor, reserved_at) as flavor,
        arg_max(part.amount, reserved_at) as amount,
        coalesce(arg_max_null(ended_at, reserved_at), 'infinity'::timestamp) as until_at
    from requested
    where reserved_at is not null
    group by all
),

parted as (
    select
        requested.*,
        coalesce(nullif(requested.part.flavor, ''), slice.flavor, '') as flavor,
        least(requested.part.amount, coalesce(slice.amount, 0)) as taken_amount,
        cardinality(requested.waiting_counts) > 0 as is_admitted_in_part,
        coalesce(requested.waiting_counts[requested.part.pod_set] / requested.part.pod_count, 1) as waiting_ratio,
        unnest([
            { 'name': '', 'from_at': if(is_admitted_in_part, requested.reserved_at, requested.queued_at), 'amount': requested.part.amount - taken_amount },
            { 'name': '/waiting', 'from_at': requested.queued_at, 'amount': if(is_admitted_in_part, requested.part.amount * waiting_ratio, 0) },
            {
                'name': '/replaced',
                'from_at': greatest(requested.queued_at, least(slice.until_at, requested.reserved_at)),
                'amount': taken_amount
            }
        ]) as share
    from requested
    left join slice
        on
            requested.cluster = slice.cluster
            and requested.replaces = slice.replaces
            and requested.part.pod_set = slice.pod_set
            and requested.part.resource = slice.resource
),

-- A pod group waits until its first pod exists; some of its pods may be created later.
group_seen as (
    select
        object.* similar to '^(cluster|namespace|name|uid)$',
        max(object.spec ->> '$.queue') as queue,
        any_value((object.spec -> '$.minResources')::map (varchar, varchar)) as amounts,
        max(try_cast(object.spec ->> '$.minMember' as integer)) as pod_count,
        least(min(object.created_at)::timestamp, min(snapshot.observed_at)) as created_at,
        min(snapshot.observed_at) filter (where coalesce(object.status ->> '$.phase', 'Pending') not in ('Pending', 'Inqueue')) as over_at,
        arg_max_null(snapshot.next_at, snapshot.observed_at) as gone_at
    from lake.quota as object
    inner join day.state_snapshot as snapshot
        using (cluster, kind, observed_at)
    where object.kind = 'podgroups.scheduling.volcano.sh'
    group by all
),

claim_seen as (
    select
        claim.* similar to '^(cluster|namespace|claim_uid|is_extended_resource)$',
        any_value(claim.requests) as requests,
        least(min(claim.created_at)::timestamp, min(snapshot.observed_at)) as created_at,
        coalesce(min(claim.allocated_at)::timestamp, min(snapshot.observed_at) filter (where claim.is_allocated)) as allocated_at,
        arg_max_null(snapshot.next_at, snapshot.observed_at) as gone_at
    from lake.claim as claim
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where snapshot.kind = 'resourceclaims.resource.k8s.io'
    group by all
),

claim_part as (
    select
        *,
        unnest(requests) as request,
        generate_subscripts(requests, 1) as number
    from claim_seen
),

-- A device is charged under its class, and under the extended resource of the class if no pod requests it by that name.
key as (
    select
        cluster,
        device_class,
        'requests.' || arg_max(extended_resource, observed_at) as resource
    from lake.device_class
    group by all
    union
    select
        cluster,
        request.device_class,
        request.device_class || '.deviceclass.resource.k8s.io/devices' as resource
    from claim_part
),

-- The API server adds a later alternative whole if it is larger than all before it: 1, then 2 are 3.
charged as (
    select
        part.*,
        key.resource,
        coalesce(part.request.device_count, 32) as device_count,
        max(coalesce(part.request.device_count, 32)) over (
            partition by part.cluster, part.claim_uid, part.request.request, key.resource
            order by part.number
            rows between unbounded preceding and 1 preceding
        ) as before_count
    from claim_part as part
    inner join key
        on
            part.cluster = key.cluster
            and part.request.device_class = key.device_class
    where not part.request.is_admin_access and not (part.is_extended_resource and key.resource like 'requests.%')
),

quota as (
    select distinct
        columns('^(cluster|quota|resource)$'),
        unnest(namespaces) as namespace
    from day.quota_terms
    where system = 'kubernetes' and coalesce(scopes, '') = ''
),

object as (
    select
        parted.cluster,
        'kueue' as system,
        parted.cluster_queue as quota,
        parted.part.resource,
        coalesce(nullif(parted.flavor, ''), placed.flavor) as flavor,
        concat(parted.request_uid, parted.share.name) as request_uid,
        parted.share.from_at as created_at,
        if(parted.share.name = '/waiting', null, parted.reserved_at) as bound_at,
        if(parted.share.name = '/waiting', parted.reserved_at, parted.ended_at) as ended_at,
        parted.priority,
        sum(parted.share.amount) as amount_native,
        min(parted.part.amount / nullif(parted.part.pod_count, 0)) as pod_native
    from parted
    left join day.quota_placement as placed
        on
            parted.cluster = placed.cluster
            and parted.cluster_queue = placed.quota
            and parted.part.resource = placed.resource
            and parted.part.placement = placed.placement
    where parted.share.amount > 0 and parted.share.from_at < 'infinity'::timestamp
    group by all
    union all by name
    select
        seen.cluster,
        'volcano' as system,
        coalesce(nullif(seen.queue, ''), 'default') as quota,
        unnest(map_keys(seen.amounts)) as resource,
        '' as flavor,
        'group ' || seen.uid as request_uid,
        seen.created_at,
        least(min(pod.created_at), seen.over_at, seen.gone_at) as ended_at,
        try_cast(unnest(map_values(seen.amounts)) as double) as amount_native,
        amount_native / greatest(1, seen.pod_count) as pod_native
    from group_seen as seen
    left join day.quota_pod as pod
        on
            seen.cluster = pod.cluster
            and seen.namespace = pod.namespace
            and seen.name = pod.scheduling_group
            and coalesce(pod.ended_at > seen.created_at, true)
    where seen.amounts is not null
    group by seen.cluster, seen.queue, seen.uid, seen.amounts, seen.pod_count, seen.created_at, seen.over_at, seen.gone_at
    union all by name
    select
        charged.cluster,
        'kubernetes' as system,
        quota.quota,
        charged.resource,
        '' as flavor,
        'claim ' || charged.claim_uid as request_uid,
        charged.created_at,
        charged.allocated_at as bound_at,
        charged.gone_at as ended_at,
        sum(charged.device_count)::double as amount_native,
        amount_native as pod_native
    from charged
    inner join quota
        using (cluster, namespace, resource)
    where charged.device_count > coalesce(charged.before_count, 0)
    group by all
),

own_request as (
    select
        * exclude (namespace, pod, pod_uid, amount_gpus, running_at, end_reason),
        pod_uid as request_uid,
        amount_native as pod_native,
        amount_gpus as pod_gpus
    from day.quota_pod_interval
    where system != 'kueue' or cluster not in (select counted.cluster from counted)
    union all by name
    select
        object.*,
        regexp_extract(object.resource, 'mig-.*') as part,
        object.pod_native * unit.gpus_per_native as pod_gpus
    from object
    inner join day.quota_unit as unit
        using (system, resource)
    where object.amount_native > 0
)

-- A request of a quota also counts for the quotas above it, for as long as they contain it.
select
    own_request.* replace (
        above.above as quota,
        greatest(own_request.created_at, above.start_at) as created_at,
        if(own_request.bound_at < coalesce(above.end_at, 'infinity'::timestamp), greatest(own_request.bound_at, above.start_at), null) as bound_at,
        least(own_request.ended_at, above.end_at) as ended_at
    ),
    above.depth_count = 1 as is_own
from own_request
inner join day.quota_above as above
    using (cluster, system, quota)
semi join day.quota_terms as term
    on
        own_request.cluster = term.cluster
        and own_request.system = term.system
        and above.above = term.quota
        and own_request.resource = term.resource
        and own_request.flavor = term.flavor
where coalesce(least(own_request.ended_at, above.end_at) > greatest(own_request.created_at, above.start_at), true)
