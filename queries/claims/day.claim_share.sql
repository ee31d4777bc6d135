-- Fraction of a shareable device that each resource claim takes.
--
-- The fraction is the largest over all capacities: half of the memory and a tenth of the cores take half of the device. The scheduler writes the
-- consumption of a share, rounded up by the driver's rules. Without it, the requested capacity is a minimum. A device without the share's capacities
-- has no row.
--
-- grain:  cluster, namespace, claim_uid, driver, pool, device, share_id, request
-- reads:  lake.claim, lake.claim_device, lake.device
-- source: ResourceClaim status.allocation.devices.results[].consumedCapacity, spec.devices.requests[].capacity; ResourceSlice capacity
-- columns:
--   share_source     consumed capacity or requested capacity
with share as (
    select
        device.* similar to '^(cluster|namespace|claim_uid|driver|pool|device|share_id|request)$',
        max(device.observed_at) as last_at,
        arg_max(device.consumed_capacity, device.observed_at) as consumed,
        arg_max(
            list_filter(
                claim.requests, lambda entry: entry.request = device.request and entry.subrequest = device.subrequest
            )[1].capacities,
            device.observed_at
        ) as requested
    from lake.claim_device as device
    inner join lake.claim
        using (cluster, namespace, claim_uid, observed_at)
    where device.share_id != '' and not device.is_admin_access
    group by all
),

-- The last description in resource slices before the last snapshot of the share, else the first after it.
allocatable as (
    select
        share.* exclude (last_at, consumed, requested),
        any_value(if(cardinality(share.consumed) > 0, share.consumed, share.requested)) as taken,
        if(any_value(cardinality(share.consumed)) > 0, 'consumed capacity', 'requested capacity') as share_source,
        arg_max(
            device.capacities, if(device.observed_at <= share.last_at, 1, -1) * epoch_ms(device.observed_at)
        ) as capacities
    from share
    inner join lake.device
        using (cluster, driver, pool, device)
    group by share.cluster, share.namespace, share.claim_uid, share.driver, share.pool, share.device, share.share_id, share.request
),

part as (
    select
        * exclude (taken, capacities),
        -- Memory that a driver reserves may make consumption slightly larger than capacity.
        map_from_entries([
            { 'key': name, 'value': least(1, taken[name] / capacities[name]) }
            for name in map_keys(taken) if capacities[name] > 0
        ]) as capacity_ratios
    from allocatable
)

select
    * exclude (share_source, capacity_ratios),
    list_max(map_values(capacity_ratios)) as share_ratio,
    share_source,
    capacity_ratios
from part
where cardinality(capacity_ratios) > 0
