-- Free capacity of Koordinator's devices: identity, topology, allocated and free amounts, health.
--
-- Amounts are from the last snapshot, beside means over the window. Koordinator does not count allocations under a GPU's other resource names.
--
-- grain:  cluster, node_name, device_type, minor, device_id
-- reads:  facts.device_capacity
-- params: since_at, until_at
-- columns: those of facts.device_capacity without start_at, end_at; seen_until_at, observed_seconds, healthy_seconds,
--          free_core_percent_avg, free_memory_bytes_avg
--   core_percent           total computing power; for rdma and fpga the percent of the device
--   free_core_percent      unallocated computing power
--   observed_seconds       s covered by snapshots
with cut as (
    select * replace (greatest(start_at, $since_at) as start_at, least(end_at, $until_at) as end_at)
    from facts.device_capacity
    where start_at < $until_at and end_at > $since_at
),

allocated as (
    select
        *,
        epoch_ms(end_at - start_at) / 1000 as held_seconds
    from cut
),

mean as (
    select
        columns('^(cluster|node_name|device_type|minor|device_id)$'),
        sum(held_seconds) as observed_seconds,
        coalesce(sum(held_seconds) filter (where is_healthy), 0) as healthy_seconds,
        sum(free_core_percent * held_seconds) / sum(held_seconds) filter (where free_core_percent is not null) as free_core_percent_avg,
        sum(free_memory_bytes * held_seconds) / sum(held_seconds) filter (where free_memory_bytes is not null) as free_memory_bytes_avg
    from allocated
    group by all
),

last_seen as (
    select *
    from allocated
    qualify row_number() over (partition by cluster, node_name, device_type, minor, device_id order by end_at desc) = 1
)

select
    last_seen.* similar to '^(cluster|node_name|device_type|minor|device_id)$',
    last_seen.end_at as seen_until_at,
    last_seen.* similar to '^(is_healthy|health_reason|(socket|pcie|pci_bus)_id|numa_node|partition_minors|.*_percent|.*_bytes|pod_count)$',
    mean.* similar to '^(observed_seconds|healthy_seconds|free_core_percent_avg|free_memory_bytes_avg)$'
from last_seen
inner join mean
    using (cluster, node_name, device_type, minor, device_id)
