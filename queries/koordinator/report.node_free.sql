-- Free capacity of Koordinator's nodes at the last snapshot: sums over healthy devices, and the largest request that still fits.
--
-- A request above 100 % takes whole devices and is a multiple of 100. A request up to 100 % must fit on one device. Devices are taken in the order of
-- their numbers.
--
-- grain:  cluster, node_name, device_type
-- reads:  report.device_free
-- columns: cluster, node_name, device_type, device_count, healthy_device_count, core_percent, memory_bytes, memory_ratio_percent, free_core_percent,
--          free_memory_bytes, free_memory_ratio_percent, whole_device_count, largest_percent, largest_minors, largest_memory_bytes, fragmentation_ratio
--   device_count               devices
--   core_percent               computing power of healthy devices, 100 each; for rdma and fpga the percent of the devices
--   memory_bytes               memory of healthy devices
--   memory_ratio_percent       memory of healthy devices in percent, 100 each
--   free_core_percent          free part of core_percent
--   free_memory_bytes          free part of memory_bytes
--   free_memory_ratio_percent  free part of memory_ratio_percent
with device as (
    select
        *,
        least(free_core_percent, coalesce(free_memory_ratio_percent, free_core_percent)) as free_percent,
        is_healthy and allocated_core_percent = 0 and coalesce(allocated_memory_ratio_percent, 0) = 0 as is_whole
    from report.device_free
    qualify seen_until_at = max(seen_until_at) over (partition by cluster)
),

node as (
    select
        columns('^(cluster|node_name|device_type)$'),
        count(*) as device_count,
        count(*) filter (where is_healthy) as healthy_device_count,
        coalesce(sum(core_percent) filter (where is_healthy), 0) as core_percent,
        sum(columns('^memory_(bytes|ratio_percent)$')) filter (where is_healthy),
        sum(columns('^(free_core_percent|free_memory_bytes|free_memory_ratio_percent|free_percent)$')),
        count(*) filter (where is_whole) as whole_device_count,
        max(free_percent) as most_percent,
        string_agg(minor::varchar, ',' order by minor) filter (where is_whole) as whole_minors,
        arg_min(minor, (-free_percent, minor))::varchar as best_minor,
        max(free_memory_bytes) as largest_memory_bytes
    from device
    group by all
)

select
    * exclude (free_percent, most_percent, whole_minors, best_minor, largest_memory_bytes),
    if(whole_device_count > 0, 100 * whole_device_count, most_percent)::double as largest_percent,
    case when whole_device_count > 0 then whole_minors when most_percent > 0 then best_minor else '' end as largest_minors,
    largest_memory_bytes,
    1 - largest_percent / nullif(free_percent, 0) as fragmentation_ratio
from node
