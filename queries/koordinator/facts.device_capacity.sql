-- Allocated and free capacity, health and topology of Koordinator's devices.
--
-- An unhealthy device has no free capacity. A GPU may have other resource names too (nvidia.com/gpu by the device plugin); Koordinator does not count
-- allocations under these. Free capacity is 0 where more is allocated than exists, and unknown where pods were not listed.
--
-- revision: 3
-- grain:  cluster, node_name, device_type, minor, device_id, start_at
-- reads:  day.device_grant, day.state_snapshot, lake.koordinator_device
-- source: Koordinator's Device objects; day.device_grant
-- columns: cluster, node_name, device_type, minor, device_id, is_healthy, health_reason, socket_id, numa_node, pcie_id, pci_bus_id,
--          partition_minors, core_percent, memory_bytes, memory_ratio_percent, allocated_core_percent, allocated_memory_bytes,
--          allocated_memory_ratio_percent, free_core_percent, free_memory_bytes, free_memory_ratio_percent, pod_count, start_at, end_at
--   core_percent       total computing power, 100; for rdma and fpga the percent of the device
--   free_core_percent  unallocated computing power; 0 for an unhealthy device
--   start_at           UTC, first snapshot with this state
--   end_at             UTC, end of this state
-- {"2": [{"minors": [0, 1], …}, …], …}: keys are numbers of devices.
with linked as (
    select distinct
        gpu_partitions,
        unnest(try_cast(gpu_partitions as json) -> '$.*[*].minors')::bigint[] as minors
    from lake.koordinator_device
    where gpu_partitions != ''
),

member as (
    select
        gpu_partitions,
        unnest(minors) as minor,
        len(minors) as device_count,
        array_to_string(minors, ',') as minors
    from linked
    where len(minors) > 1
),

linkage as (
    select *
    from member
    qualify row_number() over (partition by gpu_partitions, minor order by device_count, minors) = 1
),

device as (
    select
        device.* similar to '^(cluster|node_name|device_type|minor|device_id|is_healthy|health_reason|socket_id|numa_node|pcie_id|pci_bus_id)$',
        coalesce(if(device.device_type = 'gpu', linkage.minors, null), '') as partition_minors,
        coalesce(device.resources['koordinator.sh/gpu-core'], device.resources['koordinator.sh/' || device.device_type]) as core_percent,
        device.resources['koordinator.sh/gpu-memory'] as memory_bytes,
        device.resources['koordinator.sh/gpu-memory-ratio'] as memory_ratio_percent,
        snapshot.* similar to '^(kind|run_number|snapshot_number|observed_at)$'
    from lake.koordinator_device as device
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    left join linkage
        using (gpu_partitions, minor)
    semi join day.state_snapshot as listed
        on device.cluster = listed.cluster and device.observed_at = listed.observed_at and listed.kind = 'pods'
    where snapshot.kind = 'devices.scheduling.koordinator.sh'
),

allocated as (
    select
        device.* exclude (observed_at),
        sum(granted.core_percent) as allocated_core_percent,
        sum(granted.memory_bytes) as allocated_memory_bytes,
        sum(granted.memory_ratio_percent) as allocated_memory_ratio_percent,
        count(granted.pod_uid) as pod_count
    from device
    left join day.device_grant as granted
        on
            device.cluster = granted.cluster
            and device.node_name = granted.node_name
            and device.device_type = granted.device_type
            and device.minor = granted.minor
            and device.observed_at >= granted.start_at
            and device.observed_at < granted.end_at
    group by all
),

-- Devices are the same in many snapshots: equal states are grouped first, and only states that came back are split into runs.
state as (
    select
        * exclude (snapshot_number),
        list(snapshot_number order by snapshot_number) as snapshot_numbers
    from allocated
    group by all
),

counted as (
    select
        * exclude (previous_at, last_at, is_followed)
        replace (
            coalesce(allocated_core_percent, 0) as allocated_core_percent,
            if(memory_bytes is null, null, coalesce(allocated_memory_bytes, 0)) as allocated_memory_bytes,
            if(memory_ratio_percent is null, null, coalesce(allocated_memory_ratio_percent, 0)) as allocated_memory_ratio_percent
        )
    from snapshot_intervals(state, day.state_snapshot)
)

select
    * exclude (pod_count, start_at, end_at),
    core_percent * 0 + if(is_healthy, greatest(0, core_percent - allocated_core_percent), 0) as free_core_percent,
    memory_bytes * 0 + if(is_healthy, greatest(0, memory_bytes - allocated_memory_bytes), 0) as free_memory_bytes,
    memory_ratio_percent * 0 + if(is_healthy, greatest(0, memory_ratio_percent - allocated_memory_ratio_percent), 0) as free_memory_ratio_percent,
    columns('^(pod_count|start_at|end_at)$')
from counted
