-- Overlapping ownership intervals of one device: seconds would count twice.
--
-- severity: fail
-- grain:  cluster, device_uuid, gpu_instance_id, start_at, other_start_at
-- reads:  day.interval_saturation
-- columns: cluster, device_uuid, gpu_instance_id, start_at, other_start_at
select
    part.* similar to '^(cluster|device_uuid|gpu_instance_id|start_at)$',
    other.start_at as other_start_at
from day.interval_saturation as part
inner join day.interval_saturation as other
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
where
    part.start_at < other.start_at
    and part.end_at > other.start_at
