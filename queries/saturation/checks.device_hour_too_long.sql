-- Device hours of more than 3600 s: samples overlap.
--
-- severity: fail
-- grain:  cluster, device_uuid, gpu_instance_id, hour_start_at
-- reads:  facts.device_hour
-- columns: cluster, device_uuid, gpu_instance_id, hour_start_at, observed_seconds
select columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at|observed_seconds)$')
from facts.device_hour
where observed_seconds > 3600.001  -- sums of doubles
