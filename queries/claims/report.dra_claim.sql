-- Devices of each resource claim: time allocated, reserved and used, and GPU-hours without use.
--
-- A pod or a group of pods reserves a claim; a running container that names the claim uses it. Admin access takes nothing. A share counts as its part
-- of the device, or as an equal part if its size is unknown. Claims without a snapshot are known from labels alone.
--
-- grain:  cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request
-- reads:  facts.claim_device, facts.claim_hour, facts.claim_reservation, facts.claim_use
-- params: since_at, until_at
-- source: ResourceClaims, ResourceSlices and pods by snapshots; labels of the device's series; kube_pod_resourceclaim_info
-- columns: cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, allocated_seconds, reserved_seconds, used_seconds,
--          idle_seconds, allocated_gpu_hours, reserved_idle_gpu_hours, share_ratio, share_source, use, consumers, pod_count, podgroup_count,
--          container_count, is_shared, is_admin_access, is_extended_resource, subrequest, device_uuid, gpu_instance_id, matched_by,
--          node_name, gpu_model, profile, start_at, end_at, start_source, end_source, end_uncertainty_seconds, unknown_reasons
--   idle_seconds             s allocated without a running container that uses it
--   allocated_gpu_hours      h of whole GPUs allocated
--   reserved_idle_gpu_hours  h of whole GPUs allocated without a container that uses them
--   share_ratio              0..1, part of the device that the claim has; for a share, its largest part of any capacity
--   share_source             whole device, takes nothing (admin access), consumed capacity, requested capacity (a minimum), or equal parts
--   pod_count                pods that reserve it
--   is_shared                several pods or groups reserve it, or several claims have the device at once
--   matched_by               match of the device to telemetry; '' without a match
--   start_at                 UTC, start of the allocation in the days of the window
--   end_at                   UTC, end of the allocation in these days, also outside the window
with allocated as (
    select
        columns('^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$'),
        any_value(subrequest) as subrequest,
        bool_or(columns('^is_(admin_access|extended_resource)$')),
        arg_max(device_uuid, (matched_by != '', end_at)) as device_uuid,
        coalesce(arg_max(gpu_instance_id, (matched_by != '', end_at)), '') as gpu_instance_id,
        arg_max(matched_by, (matched_by != '', end_at)) as matched_by,
        arg_max(node_name, end_at) as node_name,
        arg_max(gpu_model, end_at) as gpu_model,
        arg_max(profile, end_at) as profile,
        arg_max(columns('^share_(ratio|source)$'), end_at) as "\0",
        min(start_at) as start_at,
        max(end_at) as end_at,
        arg_min(start_source, start_at) as start_source,
        arg_max(columns('^end_(source|uncertainty_seconds)$'), end_at) as "\0"
    from facts.claim_device
    where start_at < $until_at and end_at > $since_at
    group by cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request
),

hour as (
    select
        columns('^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$'),
        sum(allocated_seconds) as allocated_seconds,
        if(count(reserved_seconds) = count(*), sum(reserved_seconds), null) as reserved_seconds,
        if(count(used_seconds) = count(*), sum(used_seconds), null) as used_seconds,
        sum(allocated_gpu_seconds) / 3600 as allocated_gpu_hours,
        if(count(idle_gpu_seconds) = count(*), sum(idle_gpu_seconds) / 3600, null) as reserved_idle_gpu_hours,
        max(claim_count) as claim_count
    from facts.claim_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request
),

consumer as (
    select
        allocated.* similar to '^(cluster|namespace|claim|claim_uid)$',
        string_agg(
            distinct if(reservation.consumer_resource = 'pods', '', reservation.consumer_resource || '/') || reservation.consumer,
            ', ' order by if(reservation.consumer_resource = 'pods', '', reservation.consumer_resource || '/') || reservation.consumer
        ) as consumers,
        count(distinct reservation.consumer_uid) filter (where reservation.consumer_resource = 'pods') as pod_count,
        count(distinct reservation.consumer_uid) filter (where reservation.consumer_resource != 'pods') as podgroup_count
    from allocated
    inner join facts.claim_reservation as reservation
        using (cluster, namespace, claim)
    where
        reservation.claim_uid in ('', allocated.claim_uid)
        and reservation.start_at < allocated.end_at
        and reservation.end_at > allocated.start_at
        and reservation.start_at < $until_at and reservation.end_at > $since_at
    group by allocated.cluster, allocated.namespace, allocated.claim, allocated.claim_uid
),

container as (
    select
        columns('^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$'),
        string_agg(distinct pod, ', ' order by pod) as pods,
        count(distinct pod || '/' || pod_uid) as user_count,
        count(distinct pod || '/' || pod_uid || '/' || container) as container_count
    from facts.claim_use
    where start_at < $until_at and end_at > $since_at
    group by cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request
)

select
    allocated.* similar to '^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$',
    hour.* similar to '^(allocated|reserved|used)_seconds$',
    hour.allocated_seconds - hour.used_seconds as idle_seconds,
    if(allocated.is_admin_access, 0, hour.allocated_gpu_hours) as allocated_gpu_hours,
    if(allocated.is_admin_access, 0, hour.reserved_idle_gpu_hours) as reserved_idle_gpu_hours,
    allocated.share_ratio,
    coalesce(nullif(allocated.share_source, ''), 'equal parts') as share_source,
    case
        when allocated.is_admin_access then 'watching'
        when container.container_count > 0 then 'used'
        when hour.used_seconds is null then 'unknown'
        when hour.reserved_seconds > 0 then 'no container'
        else 'no consumer'
    end as use,
    -- A claim that is known from labels alone was reserved by the pods that used it.
    coalesce(consumer.consumers, container.pods, '') as consumers,
    coalesce(consumer.pod_count, container.user_count, hour.reserved_seconds * 0)::bigint as pod_count,
    coalesce(consumer.podgroup_count, hour.reserved_seconds * 0)::bigint as podgroup_count,
    coalesce(container.container_count, if(hour.used_seconds is null, null, 0)) as container_count,
    hour.claim_count > 1 or coalesce(consumer.pod_count + consumer.podgroup_count, container.user_count, 0) > 1 as is_shared,
    allocated.* similar to '^(is_(admin|ext).*|subrequest|device_uuid|gpu_.*|matched_by|node_name|profile|(start|end)_(at|source|uncertainty_seconds))$',
    unknown_reasons([(name, if(hour.used_seconds is null, 'pods_not_listed', null)) for name in ['used_seconds', 'idle_seconds']] || [
        ('reserved_seconds', if(hour.reserved_seconds is null, 'pods_not_listed', null)),
        ('pod_count', if(coalesce(consumer.pod_count, container.user_count, hour.reserved_seconds) is null, 'pods_not_listed', null)),
        ('podgroup_count', if(coalesce(consumer.podgroup_count, hour.reserved_seconds) is null, 'pods_not_listed', null)),
        ('container_count', if(hour.used_seconds is null and container.container_count is null, 'pods_not_listed', null)),
        ('reserved_idle_gpu_hours', if(hour.reserved_idle_gpu_hours is null and not allocated.is_admin_access, 'pods_not_listed', null)),
        ('share_ratio', if(allocated.share_ratio is null, 'not_observed', null)),
        ('end_uncertainty_seconds', if(allocated.end_uncertainty_seconds is null, 'labels_only', null))
    ]) as unknown_reasons
from allocated
inner join hour
    using (cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request)
left join consumer
    using (cluster, namespace, claim, claim_uid)
left join container
    using (cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request)
