-- A GPU whose hours of a day are not what its buckets hold: a span was lost, or stands in two of them.
--
-- severity: fail
-- grain:  cluster, node_name, device_uuid, day
-- reads:  facts.window_capacity, facts.window_ledger
-- params:
-- source: facts.window_capacity, facts.window_ledger
-- columns:
--   cluster               cluster name
--   node_name             node, '' where unknown
--   device_uuid           UUID of the physical GPU; '' of those that no exporter tells of
--   day                   UTC day
--   capacity_gpu_hours    h there were
--   gpu_hours             h in the buckets
--   difference_gpu_hours  h, the first less the second
with part as (
    select
        cluster,
        node_name,
        device_uuid,
        day,
        capacity_seconds / 3600 as capacity_gpu_hours,
        0 as gpu_hours
    from facts.window_capacity
    union all by name
    select
        cluster,
        node_name,
        device_uuid,
        day,
        0 as capacity_gpu_hours,
        gpu_hours
    from facts.window_ledger
)

select
    cluster,
    node_name,
    device_uuid,
    day,
    sum(capacity_gpu_hours) as capacity_gpu_hours,
    sum(gpu_hours) as gpu_hours,
    sum(capacity_gpu_hours) - sum(gpu_hours) as difference_gpu_hours
from part
group by all
having abs(sum(capacity_gpu_hours) - sum(gpu_hours)) > 0.001
