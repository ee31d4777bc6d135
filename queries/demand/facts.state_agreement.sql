-- Comparison of claimed devices and scheduler refusals in a snapshot with computed counts: a total row, and a row per difference.
--
-- Each device of a claim must be in a ResourceSlice, and no other device is allocated. Nodes that the scheduler reports as Insufficient
-- must have fewer free units than the pod requests.
--
-- grain:  cluster, compared, object, resource, observed_at
-- reads:  day.claim_allocation, day.node_capacity, day.snapshot_request, day.state_snapshot, lake.claim_device, lake.device, lake.pod
-- source: ResourceClaim status.allocation; ResourceSlice; Pod condition PodScheduled; day.claim_allocation; day.node_capacity
-- columns: cluster, compared, object, resource, observed_at, hour_start_at, compared_count, differing_count, reported_units, counted_units
with snapshot as (
    select columns('^(cluster|observed_at)$')
    from day.state_snapshot
    where kind in ('resourceclaims.resource.k8s.io', 'resourceslices.resource.k8s.io')
    group by all
    having count(*) = 2
),

reported as (
    select
        claim.* similar to '^(cluster|driver|pool|device|observed_at)$',
        bool_or(slice.device is not null) as is_allocatable
    from lake.claim_device as claim
    inner join snapshot
        using (cluster, observed_at)
    left join lake.device as slice
        using (cluster, driver, pool, device, observed_at)
    group by all
),

counted as (
    select distinct
        allocation.* similar to '^(cluster|driver|pool|device)$',
        snapshot.observed_at
    from day.claim_allocation as allocation
    inner join snapshot
        using (cluster)
    where
        allocation.start_at <= snapshot.observed_at
        and allocation.end_at > snapshot.observed_at
),

refused as (
    select
        pod.* similar to '^(cluster|namespace|pod)$',
        pod.observed_at::timestamp as observed_at,
        request.resource,
        request.effective_units as wanted_units,
        regexp_extract(pod.unschedulable_message, '^0/(\d{1,9}) nodes are available:', 1) as node_count,
        regexp_extract(
            pod.unschedulable_message, '\b(\d{1,9}) Insufficient ' || regexp_escape(request.resource) || '(?:,|\.?(?: |$))', 1
        ) as full_count
    from lake.pod as pod
    inner join day.snapshot_request as request
        using (cluster, pod_uid)
    where
        contains(pod.unschedulable_message, ' Insufficient ' || request.resource)
        and request.stage = 'refused'
        and request.start_at <= pod.observed_at
        and request.end_at > pod.observed_at
),

beside as (
    select
        cluster,
        'allocated devices' as compared,
        driver || '/' || pool || '/' || device as object,
        '' as resource,
        observed_at,
        coalesce(is_allocatable, false)::bigint as reported_units,
        (counted.cluster is not null)::bigint as counted_units
    from reported
    full join counted
        using (cluster, driver, pool, device, observed_at)
    union all by name
    select
        refused.* similar to '^(cluster|resource|observed_at)$',
        'refused pods' as compared,
        refused.namespace || '/' || refused.pod as object,
        refused.full_count::bigint as reported_units,
        least(reported_units, refused.node_count::bigint - (
            select count(*)
            from day.node_capacity as node
            where
                node.cluster = refused.cluster
                and node.source = 'snapshot'
                and node.resource = refused.resource
                and node.free_units >= refused.wanted_units
                and node.start_at <= refused.observed_at
                and node.end_at > refused.observed_at
        )) as counted_units
    from refused
    where refused.node_count != '' and refused.full_count != ''
)

select *
from agreement(beside)
