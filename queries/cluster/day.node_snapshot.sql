-- State of each node on a day from snapshots, with the names of kube-state-metrics.
--
-- Names of resources and labels have '_' for '.', '/' and '-', as kube-state-metrics writes them. Devices are physical: partitions of a GPU in its
-- driver's ResourceSlices count as one, possible partitions as none. Completed pods have no devices.
--
-- grain:  cluster, node_name, day
-- reads:  day.state_snapshot, lake.claim_consumer, lake.claim_device, lake.device, lake.node, lake.pod
-- source: Node status.capacity and labels; ResourceSlices of GPU drivers; Pods
-- columns:
--   labels              its labels at the last snapshot
--   accelerator_pods    null if no pods were listed that day
--   has_slices_at_end   whether the day's last snapshot of slices has some of the node
with snapshot as (
    select
        *,
        observed_at::date as day,
        least(stands_until_at, observed_at::date + interval 1 day) as until_at,
        observed_at = max(observed_at) over (partition by cluster, kind, observed_at::date) as is_last
    from day.state_snapshot
),

node as (
    select
        node.* exclude (observed_at, capacity),
        snapshot.* exclude (cluster),
        map_from_entries([
            { 'k': regexp_replace(entry.key, '[^a-zA-Z0-9_]', '_', 'g'), 'v': entry.value } for entry in map_entries(node.capacity)
            if entry.value > 0 and (gpu_units(entry.key) > 0 or entry.key in ('nvidia.com/gpucores', 'volcano.sh/vgpu-cores'))
        ]) as capacity
    from lake.node
    inner join snapshot
        using (cluster, observed_at)
    where snapshot.kind = 'nodes'
),

listed as (
    select
        columns('^(cluster|node_name|day)$'),
        min(observed_at) as start_at,
        max(until_at) as end_at,
        min(observed_at) filter (where cardinality(capacity) > 0) as allocatable_from_at,
        max(until_at) filter (where cardinality(capacity) > 0) as allocatable_until_at,
        arg_max(capacity, observed_at) as capacity_at_end,
        map_from_entries([
            { 'k': 'label_' || regexp_replace(entry.key, '[^a-zA-Z0-9_]', '_', 'g'), 'v': entry.value } for entry in map_entries(arg_max(labels, observed_at))
        ]) as labels
    from node
    group by all
),

entry as (
    select
        columns('^(cluster|node_name|day)$'),
        unnest(map_entries(capacity)) as pair
    from node
),

most as (
    select
        columns('^(cluster|node_name|day)$'),
        pair.key as resource,
        max(pair.value) as amount
    from entry
    group by all
),

allocatable as (
    select
        columns('^(cluster|node_name|day)$'),
        map_from_entries(list({ 'k': resource, 'v': amount } order by resource)) as capacity
    from most
    group by all
),

shown as (
    select
        device.* similar to '^(cluster|node_name)$',
        snapshot.* similar to '^(day|observed_at|until_at|is_last)$',
        string_agg(distinct device.driver, ', ' order by device.driver) as drivers,
        count(distinct coalesce(
            nullif(device.device_uuid, ''), nullif(device.pci_bus_id, ''), device.driver || '/' || device.pool || '/' || device.device
        )) as device_count
    from lake.device
    inner join snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'resourceslices.resource.k8s.io'
        and device.node_name != '' and regexp_matches(device.driver, '^(gpu|gaudi|tpu)\.')
    group by all
),

sliced as (
    select
        columns('^(cluster|node_name|day)$'),
        min(observed_at) as start_at,
        max(until_at) as end_at,
        bool_or(is_last) as is_last,
        arg_max(drivers, device_count) as drivers,
        max(device_count) as device_count
    from shown
    group by all
),

pod as (
    select
        pod.cluster,
        pod.node_name,
        pod.observed_at::date as day,
        list_sort(list(distinct pod.namespace || '/' || pod.pod)) as pods
    from lake.pod
    where
        pod.node_name != ''
        and pod.phase not in ('Succeeded', 'Failed')
        and (
            len([name for name in map_keys(pod.effective_requests) if is_accelerator(name)]) > 0
            or (pod.cluster, pod.pod_uid) in (
                select (consumer.cluster, consumer.consumer_uid)
                from lake.claim_consumer as consumer
                inner join lake.claim_device as device
                    using (cluster, claim_uid)
                where regexp_matches(device.driver, '^(gpu|gaudi|tpu|npu|neuron)\.')
            )
        )
    group by all
)

select
    columns('^(cluster|node_name|day)$'),
    least(listed.start_at, sliced.start_at)::timestamp as start_at,
    greatest(listed.end_at, sliced.end_at)::timestamp as end_at,
    least(listed.allocatable_from_at, sliced.start_at)::timestamp as allocatable_from_at,
    greatest(listed.allocatable_until_at, sliced.end_at)::timestamp as allocatable_until_at,
    coalesce(allocatable.capacity, map { }) as capacity,
    coalesce(listed.capacity_at_end, map { }) as capacity_at_end,
    coalesce(listed.labels, map { }) as labels,
    coalesce(sliced.drivers, '') as slice_drivers,
    sliced.device_count as slice_device_count,
    coalesce(sliced.is_last, false) as has_slices_at_end,
    if((cluster, day, 'pods') in (select (snapshot.cluster, snapshot.day, snapshot.kind) from snapshot), coalesce(pod.pods, []), null) as accelerator_pods
from listed
full join sliced
    using (cluster, node_name, day)
left join allocatable
    using (cluster, node_name, day)
left join pod
    using (cluster, node_name, day)
