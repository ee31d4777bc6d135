-- GPUs without data of the energy counter for some of the day's first hour.
--
-- grain:  cluster, device_uuid
-- reads:  facts.device_hour
-- columns:
--   day_start_at   UTC
select
    columns('^(cluster|device_uuid)$'),
    min(date_trunc('day', hour_start_at)) as day_start_at
from facts.device_hour
where gpu_instance_id = ''
group by cluster, device_uuid
having sum(energy_sample_count) > 0 and coalesce(sum(energy_seen_seconds) filter (where hour(hour_start_at) = 0), 0) < 3600
