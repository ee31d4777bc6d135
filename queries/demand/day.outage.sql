-- Outages of nodes and GPUs: the node not ready or cordoned, the GPU unhealthy or tainted.
--
-- A state is valid until the next snapshot, even if that no longer lists the node, for at most 15 minutes. A device plugin reports the number of a
-- node's unhealthy GPUs, and not their names. If no other GPU of the node is free, the unhealthy GPUs are those without a pod.
--
-- grain:  cluster, node_name, device_uuid, start_at, end_at, cause
-- reads:  day.node_capacity, day.state_snapshot, lake.device, lake.koordinator_device, lake.node, lake.sample, lake.series
-- source: kube_node_status_condition, kube_node_spec_unschedulable; day.node_capacity; Node status, ResourceSlice taints, Koordinator's Device objects
-- columns:
--   node_name    node; '' for an outage of one GPU
--   device_uuid  UUID of the GPU; '' for an outage of the node
--   cause        not_ready, cordoned, unhealthy or tainted
with series as (
    select
        cluster,
        series_id,
        coalesce(labels['exported_node'], labels['node'], '') as node_name,
        if(signal = 'kube_node_status_condition', 'not_ready', 'cordoned') as cause,
        if(signal = 'kube_node_status_condition', 0, 1) as bad_count
    from lake.series
    where
        signal = 'kube_node_spec_unschedulable'
        or (signal = 'kube_node_status_condition' and labels['condition'] = 'Ready' and labels['status'] = 'true')
),

listed as (
    select
        cluster,
        observed_at::timestamp as observed_at,
        'nodes' as kind,
        node_name,
        '' as device_uuid,
        case when not is_ready then 'not_ready' when is_unschedulable then 'cordoned' end as cause
    from lake.node
    union all by name
    select
        columns('^(cluster|device_uuid)$'),
        observed_at::timestamp as observed_at,
        'resourceslices.resource.k8s.io' as kind,
        '' as node_name,
        case
            when len([taint for taint in taints if taint like '%:NoSchedule' or taint like '%:NoExecute']) > 0 then 'tainted'
        end as cause
    from lake.device
    where device_type = 'gpu' and device_uuid != ''
    union all by name
    select
        cluster,
        observed_at::timestamp as observed_at,
        'devices.scheduling.koordinator.sh' as kind,
        '' as node_name,
        device_id as device_uuid,
        if(is_healthy, null, 'unhealthy') as cause
    from lake.koordinator_device
    where device_type = 'gpu' and device_id != ''
)

select
    series.cluster,
    series.node_name,
    '' as device_uuid,
    sample.seen_at::timestamp as start_at,
    held_until(sample.seen_at, sample.held_seconds) as end_at,
    series.cause
from series
inner join lake.sample
    using (cluster, series_id)
where sample.value = series.bad_count and sample.held_seconds > 0
union by name
select
    listed.* similar to '^(cluster|node_name|device_uuid|cause)$',
    snapshot.observed_at as start_at,
    snapshot.stands_until_at as end_at
from listed
inner join day.state_snapshot as snapshot
    using (cluster, kind, observed_at)
where listed.cause is not null
union by name
select
    columns('^(cluster|node_name|start_at|end_at)$'),
    '' as device_uuid,
    unavailable_state as cause
from day.node_capacity
where resource = 'gpu' and unavailable_state = 'unhealthy' and unavailable_units > 0 and free_units = 0
