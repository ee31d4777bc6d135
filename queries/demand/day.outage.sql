-- Outages of nodes and GPUs: the node not ready or cordoned, the GPU unhealthy or tainted.
--
-- A state is valid until the next snapshot, even if that no longer lists the node, for at most 15 minutes. A device plugin reports the number of a
-- node's unhealthy GPUs, and not their names. If no other GPU of the node is free, the unhealthy GPUs are those without a pod.
--
-- grain:  cluster, node_name, device_uuid, start_at, end_at, cause
-- reads:  day.node_capacity, day.node_outage, day.state_snapshot, lake.device, lake.koordinator_device
-- source: day.node_capacity; day.node_outage; ResourceSlice taints, Koordinator's Device objects
-- columns:
--   node_name    node; '' for an outage of one GPU
--   device_uuid  UUID of the GPU; '' for an outage of the node
--   cause        not_ready, cordoned, unhealthy or tainted
with listed as (
    select
        columns('^(cluster|device_uuid)$'),
        observed_at,
        'resourceslices.resource.k8s.io' as kind,
        'tainted' as cause
    from lake.device
    where device_type = 'gpu' and device_uuid != '' and len([taint for taint in taints if taint like '%:NoSchedule' or taint like '%:NoExecute']) > 0
    union all by name
    select
        cluster,
        observed_at,
        'devices.scheduling.koordinator.sh' as kind,
        device_id as device_uuid,
        'unhealthy' as cause
    from lake.koordinator_device
    where device_type = 'gpu' and device_id != '' and is_healthy is not true
)

select
    *,
    '' as device_uuid
from day.node_outage
union by name
select
    listed.* similar to '^(cluster|device_uuid|cause)$',
    '' as node_name,
    snapshot.observed_at as start_at,
    snapshot.stands_until_at as end_at
from listed
inner join day.state_snapshot as snapshot
    using (cluster, kind, observed_at)
union by name
select
    columns('^(cluster|node_name|start_at|end_at)$'),
    '' as device_uuid,
    unavailable_state as cause
from day.node_capacity
where resource = 'gpu' and unavailable_state = 'unhealthy' and unavailable_units > 0 and free_units = 0
