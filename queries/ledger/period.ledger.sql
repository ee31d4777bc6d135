-- GPU-hours of capacity by bucket: each interval of each GPU in exactly one of ten buckets.
--
-- Each bucket has its own condition, and none is the remainder of the others. report.gpu_hour_balance compares their sum with a capacity that
-- is computed independently.
--
-- Hours of a shared GPU are divided by the allocated shares if known, else equally; hours_method has the method.
--
-- grain:  cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid
-- reads:  facts.ledger_day, period.capacity, period.holder_day, period.unseen_allocation
-- source: facts.ledger_day; what had no data: period.capacity, period.unseen_allocation; missing labels: period.holder_day
-- columns:
--   device_uuid      UUID of the physical GPU; '' for GPUs without an exporter
--   gpu_instance_id  MIG instance; '' for the whole GPU or its unsliced part
--   cause            why hours are unavailable (not_ready, cordoned, …), unknown or allocated_unmeasured (unseen, no_activity_signal, nobody_named, …), fragmented (unsliced, fragmented, …), or free without telemetry; else ''
--   first_hour_at    UTC, first hour of the day with such time; null for time without data
--   requested_gpu_hours  h of gpu_hours that only requests show, without telemetry
-- Time in which a GPU was unavailable and had no data is also part of the capacity without data.
with lost as (
    select
        columns('^(cluster|device_uuid|day)$'),
        coalesce(sum(gpu_seconds) filter (where activity = 'unseen' and gpu_instance_id = '' and not is_unsliced), 0) as lost_seconds,
        sum(gpu_seconds) filter (where activity != 'unseen' and pod = '' and not is_reserved) as unnamed_seconds
    from facts.ledger_day
    group by all
),

-- Time without data is assigned to pods one after the other, and to GPUs one after the other: the GPU of each pod is unknown. No pod gets
-- more GPU time than its request.
reported as (
    select
        *,
        sum(unseen_ratio) over filled as pod_until,
        sum(unseen_ratio) over (partition by cluster, node_name, day) as known_ratio
    from period.unseen_allocation
    window filled as (
        partition by cluster, node_name, day
        order by state, namespace, pod, pod_uid
        rows unbounded preceding
    )
),

node as (
    select
        columns('^(cluster|node_name|day)$'),
        round(any_value(known_ratio), 9) as known_ratio,
        bool_or(covers_unnamed) as covers_unnamed
    from reported
    group by all
),

-- For time without data or without labels, requests from Kubernetes count first.
capacity as (
    select
        capacity.*,
        '' as gpu_instance_id,
        false as is_reserved,
        false as is_unsliced,
        '' as stranding,
        coalesce(holder_day.cause, '') as label_cause,
        if(label_cause != '' and node.covers_unnamed, node.known_ratio, 0) as named_ratio,
        if(named_ratio > 0, coalesce(lost.unnamed_seconds, 0), 0) as unnamed_seconds,
        capacity.unseen_seconds * greatest(0, 1 - coalesce(node.known_ratio, 0)) as unreported_seconds,
        least(unreported_seconds, coalesce(lost.lost_seconds, 0)) as lost_seconds,
        least(1, unreported_seconds / nullif(lost.lost_seconds, 0)) as fit_ratio
    from period.capacity as capacity
    left join lost
        using (cluster, device_uuid, day)
    left join node
        using (cluster, node_name, day)
    left join period.holder_day as holder_day
        using (cluster, device_uuid, day)
),

filled as (
    select
        columns('^(cluster|node_name|device_uuid|day)$'),
        unseen_seconds + unnamed_seconds as lacking_seconds,
        sum(lacking_seconds) over (
            partition by cluster, node_name, day
            order by device_uuid
            rows unbounded preceding
        ) as device_until,
        sum(lacking_seconds) over (partition by cluster, node_name, day) as node_seconds
    from capacity
),

placed as (
    select
        daily.* exclude (gpu_seconds),
        coalesce(columns('^(node_name|gpu_model|label_cause)$'), ''),
        'unseen' as unseen_cause,
        daily.gpu_seconds * case
            when daily.activity = 'unseen' then if(daily.gpu_instance_id = '' and not daily.is_unsliced, coalesce(capacity.fit_ratio, 0), 1)
            when daily.pod = '' and not daily.is_reserved then 1 - coalesce(capacity.named_ratio, 0)
            else 1
        end as gpu_seconds
    from facts.ledger_day as daily
    left join capacity
        using (cluster, device_uuid, day)
    union all by name
    select
        *,
        '' as outage,
        'unseen' as activity,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as hours_method,
        unreported_seconds - lost_seconds as gpu_seconds
    from (select * replace ('' as label_cause) from capacity) as capacity
    union all by name
    select
        capacity.* replace (
            '' as label_cause,
            if(capacity.unnamed_seconds > capacity.unseen_seconds, capacity.label_cause, capacity.unseen_cause) as unseen_cause
        ),
        if(reported.state in ('allocated', 'free'), '', reported.state) as outage,
        if(reported.state = 'allocated', 'unseen', 'unreported') as activity,
        reported.namespace,
        -- A claim without a pod is the holder itself.
        coalesce(nullif(reported.pod, ''), reported.pod_uid) as pod,
        reported.pod_uid,
        if(reported.state = 'allocated', 'requests', '') as hours_method,
        node_seconds * greatest(0, least(device_until / node_seconds * known_ratio, pod_until) - greatest(
            (device_until - lacking_seconds) / node_seconds * known_ratio, pod_until - reported.unseen_ratio
        )) as gpu_seconds
    from capacity
    inner join filled
        using (cluster, node_name, device_uuid, day)
    inner join reported
        using (cluster, node_name, day)
    where filled.lacking_seconds > 0
),

bucketed as (
    select
        *,
        outage = '' or pod != '' or is_reserved or activity in ('effective', 'ineffective', 'busy') as is_usable,
        activity != 'unseen' as is_seen,
        pod != '' and not is_reserved as is_allocated,
        activity in ('effective', 'ineffective', 'busy') as is_active,
        activity != 'unreported' as is_reported,
        is_unsliced or stranding != '' as is_fragmented,
        -- The allocation of a free GPU (none) is known if the GPU is inactive and labels are not missing.
        is_allocated or (not is_active and (is_reserved or label_cause = '')) as is_owner_known,
        unnest(list_filter([
            if(not is_usable, 'unavailable', null),
            if(is_usable and not is_allocated and (not is_seen or not is_owner_known), 'unknown', null),
            if(is_usable and is_allocated and (not is_seen or not is_reported), 'allocated_unmeasured', null),
            if(is_usable and is_seen and is_allocated and is_reported and not is_active, 'allocated_idle', null),
            if(is_usable and is_allocated and activity = 'effective', 'effective', null),
            if(is_usable and is_allocated and activity = 'ineffective', 'underutilized', null),
            if(is_usable and is_allocated and activity = 'busy', 'active_unmeasured', null),
            if(is_usable and is_seen and is_owner_known and not is_allocated and is_reserved, 'reserved_idle', null),
            if(is_usable and is_seen and is_owner_known and not is_allocated and not is_reserved and is_fragmented, 'fragmented', null),
            if(is_usable and is_seen and is_owner_known and not is_allocated and not is_reserved and not is_fragmented, 'free', null)
        ], lambda each: each is not null)) as bucket
    from placed
    -- A rounding error of sums is below a microsecond.
    where gpu_seconds > 1e-6
)

select
    columns('^(cluster|node_name|device_uuid|gpu_instance_id|day|bucket)$'),
    case
        when bucket = 'unavailable' then outage
        when not is_seen or (bucket = 'free' and first_hour_at is null) then unseen_cause
        when bucket = 'allocated_unmeasured' then 'no_activity_signal'
        when bucket = 'unknown' and label_cause != '' then label_cause
        when bucket = 'unknown' then 'nobody_named'
        when bucket = 'fragmented' then if(is_unsliced, 'unsliced', stranding)
        else ''
    end as cause,
    namespace,
    pod,
    pod_uid,
    any_value(gpu_model) as gpu_model,
    min(first_hour_at) as first_hour_at,
    concat_ws(
        ', ',
        if(bool_or(hours_method = 'equal_share'), 'equal_share', null),
        if(bool_or(hours_method = 'exclusive'), 'exclusive', null),
        if(bool_or(hours_method = 'granted_share'), 'granted_share', null),
        if(bool_or(hours_method = 'requests'), 'requests', null)
    ) as hours_method,
    sum(gpu_seconds) / 3600 as gpu_hours,
    coalesce(sum(gpu_seconds) filter (where hours_method = 'requests'), 0) / 3600 as requested_gpu_hours
from bucketed
group by all
