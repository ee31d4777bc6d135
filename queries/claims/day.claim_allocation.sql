-- Allocation intervals of each device to a resource claim, from snapshots of claims.
--
-- Snapshots with the same allocation time are one allocation, also across gaps. Servers before 1.36 do not report this time: snapshots more than 15
-- minutes apart then leave unknown time between them. An allocation starts at that time; else at the binding of the first pod that reserved the claim;
-- else at the first snapshot. It ends at the earliest of these: the end of the pod for which the claim was made; the end of labels with that pod's
-- uid after the last snapshot; the allocation of the device to another claim; the first snapshot without it, or 15 minutes after the last one with
-- it. Claims disappear with their pods.
--
-- grain:  cluster, namespace, claim_uid, driver, pool, device, share_id, request, start_at
-- reads:  day.label_end, day.state_snapshot, lake.claim, lake.claim_consumer, lake.claim_device, lake.pod
-- source: ResourceClaim status.allocation; status.reservedFor and the pods' own times
-- Most allocations are the same in many snapshots: equal ones are grouped first, and only groups with other snapshots between are split.
with state as (
    select
        device.* similar to '^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request|subrequest|is_admin_access)$',
        claim.is_extended_resource,
        claim.owner_uid,
        claim.allocated_at::timestamp as allocated_at,
        snapshot.* similar to '^(kind|run_number)$',
        list(snapshot.snapshot_number order by snapshot.snapshot_number) as snapshot_numbers
    from lake.claim_device as device
    inner join lake.claim
        using (cluster, namespace, claim_uid, observed_at)
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where snapshot.kind = 'resourceclaims.resource.k8s.io'
    group by all
),

seen as (
    select * rename (start_at as observed_at, end_at as stands_until_at)
    from snapshot_intervals(state, day.state_snapshot)
),

opened as (
    select
        *,
        -- A snapshot that does not follow directly opens a new interval, unless the allocation time shows that it is the same allocation.
        case
            when allocated_at = lag(allocated_at) over same_device then false
            when allocated_at is null and lag(allocated_at) over same_device is null
                then coalesce(lag(stands_until_at) over same_device < observed_at, true)
            else true
        end as is_new
    from seen
    window same_device as (
        partition by cluster, claim_uid, driver, pool, device, share_id, request
        order by observed_at
    )
),

numbered as (
    select
        *,
        count(*) filter (where is_new) over (
            partition by cluster, claim_uid, driver, pool, device, share_id, request
            order by observed_at
            rows between unbounded preceding and current row
        ) as number
    from opened
),

step as (
    select
        columns('^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$'),
        any_value(columns('^(subrequest|owner_uid)$')),
        bool_or(columns('^is_(admin_access|extended_resource)$')),
        min(allocated_at) as allocated_at,
        min(observed_at) as first_at,
        arg_min_null(previous_at, observed_at) as previous_at,
        lag(max(stands_until_at)) over (
            partition by cluster, claim_uid, driver, pool, device, share_id, request
            order by min(observed_at)
        ) as before_until_at,
        max(columns('^(last_at|stands_until_at)$')),
        arg_max(is_followed, observed_at) as is_followed
    from numbered
    group by cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, number
),

pod as (
    select
        cluster,
        pod_uid,
        min(scheduled_at)::timestamp as scheduled_at,
        max(finished_at)::timestamp as finished_at
    from lake.pod
    group by cluster, pod_uid
),

bound as (
    select
        consumer.* similar to '^(cluster|namespace|claim_uid)$',
        min(pod.scheduled_at) as scheduled_at
    from lake.claim_consumer as consumer
    inner join pod
        using (cluster)
    where consumer.consumer_uid = pod.pod_uid
    group by all
),

begun as (
    select
        step.*,
        pod.finished_at,
        label_end.unnamed_from_at,
        case
            when step.allocated_at is not null then step.allocated_at
            when bound.scheduled_at >= coalesce(step.previous_at, step.before_until_at, bound.scheduled_at)
                then least(step.first_at, bound.scheduled_at)
            else step.first_at
        end as start_at,
        case
            when step.allocated_at is not null then 'allocation time'
            when start_at < step.first_at then 'pod scheduled'
            else 'first snapshot'
        end as start_source
    from step
    left join bound
        using (cluster, namespace, claim_uid)
    left join pod
        on
            step.cluster = pod.cluster
            and step.owner_uid = pod.pod_uid
    left join day.label_end
        on
            step.cluster = label_end.cluster
            and step.owner_uid = label_end.pod_uid
),

-- A whole device has one claim at a time, so the next claim ends the previous one; shares and admin access do not end each other.
followed as (
    select
        *,
        if(
            share_id = '' and not is_admin_access,
            min(start_at) over (
                partition by cluster, driver, pool, device, is_admin_access, share_id
                order by start_at
                range between interval 1 millisecond following and unbounded following
            ),
            null
        ) as next_start_at
    from begun
)

select
    * exclude (
        owner_uid, allocated_at, first_at, previous_at, before_until_at, last_at, stands_until_at, is_followed, finished_at,
        unnamed_from_at, next_start_at
    ),
    least(
        stands_until_at,
        if(finished_at > last_at, finished_at, null),
        if(unnamed_from_at >= last_at, unnamed_from_at, null),
        if(next_start_at > last_at, next_start_at, null)
    ) as end_at,
    case
        when end_at = finished_at then 'pod finished'
        when end_at = next_start_at then 'next allocation'
        when end_at = unnamed_from_at then 'labels'
        when is_followed then 'next snapshot'
        else 'last snapshot'
    end as end_source,
    if(end_at = finished_at, 0, epoch(end_at - last_at))::double as end_uncertainty_seconds
from followed
where start_at < stands_until_at
