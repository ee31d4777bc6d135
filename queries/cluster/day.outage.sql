-- Outages of nodes and GPUs: the node not ready or cordoned, the GPU unhealthy or tainted.
--
-- A state in a snapshot is valid until the next one, for 15 minutes at most: what came later is not known.
--
-- grain:  cluster, node_name, device_uuid, start_at, cause
-- reads:  lake.device, lake.koordinator_device, lake.node, lake.sample, lake.series
-- source: kube_node_status_condition, kube_node_spec_unschedulable; Node status, ResourceSlice taints, Koordinator's Device objects
-- columns:
--   node_name    node; '' where a GPU alone is meant
--   device_uuid  UUID of the GPU; '' where the whole node is meant
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

-- Most nodes and devices are never out: only snapshots of those that once were are put in order.
node_snapshot as (
    select
        *,
        case when not is_ready then 'not_ready' when is_unschedulable then 'cordoned' end as cause
    from lake.node
),

bad_node as (
    select distinct
        cluster,
        node_uid
    from node_snapshot
    where cause is not null
),

device_snapshot as (
    select
        *,
        case
            when len([taint for taint in taints if taint like '%:NoSchedule' or taint like '%:NoExecute']) > 0 then 'tainted'
        end as cause
    from lake.device
    where device_type = 'gpu' and device_uuid != ''
),

bad_device as (
    select distinct columns('^(cluster|driver|pool|device)$')
    from device_snapshot
    where cause is not null
),

listed as (
    select
        snapshot.*,
        '' as device_uuid,
        lead(snapshot.observed_at) over (
            partition by snapshot.cluster, snapshot.node_uid
            order by snapshot.observed_at
        ) as next_at
    from node_snapshot as snapshot
    semi join bad_node
        using (cluster, node_uid)
    union all by name
    select
        snapshot.* exclude (node_name),
        '' as node_name,
        lead(snapshot.observed_at) over (
            partition by snapshot.cluster, snapshot.driver, snapshot.pool, snapshot.device
            order by snapshot.observed_at
        ) as next_at
    from device_snapshot as snapshot
    semi join bad_device
        using (cluster, driver, pool, device)
    union all by name
    select
        cluster,
        '' as node_name,
        device_id as device_uuid,
        observed_at,
        lead(observed_at) over (
            partition by cluster, node_name, device_type, minor
            order by observed_at
        ) as next_at,
        if(is_healthy, null, 'unhealthy') as cause
    from lake.koordinator_device
    where device_type = 'gpu' and device_id != ''
)

select
    series.cluster,
    series.node_name,
    '' as device_uuid,
    sample.seen_at::timestamp as start_at,
    max(held_until(sample.seen_at, sample.held_seconds)) as end_at,
    series.cause
from series
inner join lake.sample
    using (cluster, series_id)
where sample.value = series.bad_count and sample.held_seconds > 0
group by all
union all by name
select
    columns('^(cluster|node_name|device_uuid)$'),
    observed_at::timestamp as start_at,
    max(least(coalesce(next_at, observed_at + interval 15 minute), observed_at + interval 15 minute)::timestamp) as end_at,
    cause
from listed
where cause is not null
group by all
