-- GPU days whose buckets do not add up to capacity: an interval is missing, or counts in two buckets.
--
-- severity: fail
-- grain:  cluster, node_name, device_uuid, day
-- reads:  period.capacity, period.ledger
-- columns: cluster, node_name, device_uuid, day, capacity_gpu_hours, gpu_hours, difference_gpu_hours
--   device_uuid           UUID of the physical GPU; '' for GPUs without an exporter
--   capacity_gpu_hours    h of capacity
--   gpu_hours             h in all buckets
--   difference_gpu_hours  h, capacity_gpu_hours less gpu_hours
with part as (
    select
        *,
        capacity_seconds / 3600 as capacity_gpu_hours,
        0 as gpu_hours
    from period.capacity
    union all by name
    select
        *,
        0 as capacity_gpu_hours
    from period.ledger
)

select
    columns('^(cluster|node_name|device_uuid|day)$'),
    sum(columns('^(capacity_)?gpu_hours$')),
    sum(capacity_gpu_hours) - sum(gpu_hours) as difference_gpu_hours
from part
group by all
having abs(sum(capacity_gpu_hours) - sum(gpu_hours)) > 0.001
