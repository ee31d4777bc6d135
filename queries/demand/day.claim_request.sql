-- Devices that each pod requests by resource claims, and its progress, from snapshots.
--
-- The resource has the name that quotas use for the class. Of alternatives (firstAvailable), the allocated one counts, before allocation the first
-- one. A claim of several pods counts for one of them, placed pods first. An allocated claim without pods has a row of its own, with the node of its
-- devices. Claims with admin access take nothing. Claims that the scheduler creates for extended resources count as extended resources. A pod has no
-- row for a claim that does not exist yet. A share counts as its part of the device (day.claim_share), before allocation of the smallest one.
--
-- grain:  cluster, pod_uid, resource, start_at
-- reads:  day.claim_share, day.class_device, day.state_snapshot, lake.claim, lake.claim_device, lake.device, lake.pod
-- source: ResourceClaim spec and status; capacities of ResourceSlices; Pod status.resourceClaimStatuses
-- columns:
--   is_of_several_pods  whether several pods use one of its claims, at once or in turn
with snapshot as (
    from day.state_snapshot
    where kind = 'resourceclaims.resource.k8s.io'
),

named as (
    select
        columns('^(cluster|observed_at|namespace|pod|pod_uid|node_name|phase)$'),
        case
            when node_name != '' then if(phase = 'Pending', 'bound', 'placed')
            when unschedulable_reason = 'SchedulingGated' then 'gated'
            when unschedulable_at is not null then 'refused'
            else 'unscheduled'
        end as stage,
        unnest(list_distinct(map_values(resource_claims))) as claim
    from lake.pod
    where phase in ('Pending', 'Running', 'Unknown')
),

-- Most claims, devices and pods are the same in many snapshots: equal states are grouped first, and only groups with missing
-- snapshots are split into runs. A claim's request never changes.
claim_run as (
    select
        claim.* similar to '^(cluster|namespace|claim|claim_uid|is_allocated)$',
        any_value(claim.requests) as requests,
        unnest(snapshot_runs(list(snapshot.snapshot_number order by snapshot.snapshot_number))) as run
    from lake.claim
    inner join snapshot
        using (cluster, observed_at)
    where not claim.is_extended_resource
    group by claim.cluster, claim.namespace, claim.claim, claim.claim_uid, claim.is_allocated, snapshot.run_number
),

device_run as (
    select
        device.* similar to '^(cluster|claim_uid|request|subrequest|driver|pool|device|share_id)$',
        unnest(snapshot_runs(list(snapshot.snapshot_number order by snapshot.snapshot_number))) as run
    from lake.claim_device as device
    inner join snapshot
        using (cluster, observed_at)
    where not device.is_admin_access
    group by
        device.cluster, device.claim_uid, device.request, device.subrequest, device.driver, device.pool, device.device, device.share_id,
        snapshot.run_number
),

pod_run as (
    select
        named.* exclude (observed_at),
        unnest(snapshot_runs(list(snapshot.snapshot_number order by snapshot.snapshot_number))) as run
    from named
    inner join snapshot
        using (cluster, observed_at)
    group by
        named.cluster, named.namespace, named.pod, named.pod_uid, named.node_name, named.phase, named.stage, named.claim, snapshot.run_number
),

-- A claim's allocation, devices and pods do not change between two edges.
edge as (
    select
        columns('^(cluster|claim_uid)$'),
        unnest([run.first, run.last + 1]) as snapshot_number
    from claim_run
    union by name
    select
        columns('^(cluster|claim_uid)$'),
        unnest([run.first, run.last + 1]) as snapshot_number
    from device_run
    union by name
    select
        claim_run.cluster,
        claim_run.claim_uid,
        unnest([pod_run.run.first, pod_run.run.last + 1]) as snapshot_number
    from claim_run
    inner join pod_run
        using (cluster, namespace, claim)
    where
        claim_run.run.first <= pod_run.run.last
        and claim_run.run.last >= pod_run.run.first
),

step as (
    select
        columns('^(cluster|claim_uid)$'),
        snapshot_number as first_number,
        lead(snapshot_number) over (partition by cluster, claim_uid order by snapshot_number) - 1 as last_number
    from edge
),

entry as (
    select
        claim_run.* exclude (requests, run),
        step.first_number,
        step.last_number,
        unnest(claim_run.requests) as requested,
        generate_subscripts(claim_run.requests, 1) as number
    from claim_run
    inner join step
        using (cluster, claim_uid)
    where step.first_number between claim_run.run.first and claim_run.run.last
),

pool as (
    select
        columns('^(cluster|driver|pool)$'),
        only_one(min(node_name), max(node_name)) as node_name
    from lake.device
    group by all
),

allocated as (
    select
        step.* similar to '^(cluster|claim_uid|first_number)$',
        device_run.request,
        device_run.subrequest,
        max(pool.node_name) as node_name,
        if(bool_or(device_run.share_id != '' and share.share_ratio is null), null, sum(if(device_run.share_id != '', share.share_ratio, 1))) as units
    from device_run
    inner join step
        using (cluster, claim_uid)
    left join day.claim_share as share
        using (cluster, claim_uid, driver, pool, device, share_id, request)
    left join pool
        using (cluster, driver, pool)
    where step.first_number between device_run.run.first and device_run.run.last
    group by all
),

class as (
    select
        class.* similar to '^(cluster|device_class)$',
        list(distinct device.capacities) as capacities
    from day.class_device as class
    inner join lake.device
        using (cluster, observed_at, driver, pool, device)
    where device.is_shareable
    group by all
),

-- One alternative of each request: the allocated one, else the first.
request as (
    select
        entry.* exclude (requested, number),
        entry.requested.device_class,
        allocated.node_name,
        if(entry.is_allocated, allocated.units, entry.requested.device_count * if(
            class.cluster is null or cardinality(entry.requested.capacities) = 0, 1,
            list_max(flatten([
                [least(1, wanted.value / device[wanted.key]) for wanted in map_entries(entry.requested.capacities) if device[wanted.key] > 0]
                for device in class.capacities
            ]))
        )) as units
    from entry
    left join class on entry.cluster = class.cluster and entry.requested.device_class = class.device_class
    left join allocated
        on
            entry.cluster = allocated.cluster
            and entry.claim_uid = allocated.claim_uid
            and entry.first_number = allocated.first_number
            and entry.requested.request = allocated.request
            and entry.requested.subrequest = allocated.subrequest
    where not entry.requested.is_admin_access and (not entry.is_allocated or allocated.request is not null)
    qualify row_number() over (
        partition by entry.cluster, entry.first_number, entry.claim_uid, entry.requested.request
        order by entry.number
    ) = 1
),

sized as (
    select
        * exclude (units, node_name),
        max(node_name) as node_name,
        if(count(*) = count(units), sum(units), null) as units
    from request
    group by all
),

-- A pod group that reserved a claim is not a pod.
used as (
    select
        sized.* exclude (node_name),
        coalesce(pod_run.pod, '') as pod,
        coalesce(pod_run.pod_uid, sized.claim_uid) as pod_uid,
        coalesce(pod_run.node_name, sized.node_name, '') as node_name,
        coalesce(pod_run.phase, '') as phase,
        coalesce(pod_run.stage, 'placed') as stage,
        row_number() over (
            partition by sized.cluster, sized.first_number, sized.claim_uid, sized.device_class
            order by pod_run.stage = 'placed' desc, pod_run.pod_uid
        ) = 1 as is_first,
        min(pod_run.pod_uid) over same_claim < max(pod_run.pod_uid) over same_claim as is_of_several_pods
    from sized
    left join pod_run
        on
            sized.cluster = pod_run.cluster
            and sized.namespace = pod_run.namespace
            and sized.claim = pod_run.claim
            and sized.first_number between pod_run.run.first and pod_run.run.last
    where sized.is_allocated or pod_run.pod_uid is not null
    window same_claim as (partition by sized.cluster, sized.claim_uid)
),

-- A pod's claims change at different times.
pod_edge as (
    select distinct
        columns('^(cluster|namespace|pod|pod_uid|device_class)$'),
        unnest([first_number, last_number + 1]) as snapshot_number
    from used
),

pod_step as (
    select
        * exclude (snapshot_number),
        snapshot_number as first_number,
        lead(snapshot_number) over (
            partition by cluster, namespace, pod, pod_uid, device_class
            order by snapshot_number
        ) - 1 as last_number
    from pod_edge
),

requested as (
    select
        pod_step.* exclude (first_number, last_number),
        pod_step.device_class || '.deviceclass.resource.k8s.io/devices' as resource,
        generate_series(pod_step.first_number, pod_step.last_number) as snapshot_numbers,
        'resourceclaims.resource.k8s.io' as kind,
        null as run_number,
        any_value(used.node_name) as node_name,
        any_value(used.phase) as phase,
        any_value(used.stage) as stage,
        if(
            count(*) filter (where used.is_first) = count(used.units) filter (where used.is_first),
            coalesce(sum(used.units) filter (where used.is_first), 0),
            null
        )::double as effective_units,
        if(count(*) = count(used.units), sum(used.units), null)::double as claim_units,
        coalesce(bool_or(used.is_of_several_pods), false) as is_of_several_pods
    from pod_step
    inner join used
        using (cluster, namespace, pod, pod_uid, device_class)
    where pod_step.first_number between used.first_number and used.last_number
    group by all
)

select * exclude (last_at, is_followed)
from snapshot_intervals(requested, snapshot)
