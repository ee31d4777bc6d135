-- Containers with a longer observed time on a device than the device itself.
--
-- A container's time on a MIG instance is the instance's, or the board's where the instance has no data. The limit is their sum.
--
-- severity: fail
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  facts.container_hour, facts.device_hour
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at, observed_seconds, device_seconds
--   observed_seconds  s in which the device had data while allocated
select
    allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at|observed_seconds)$',
    sum(device_hour.observed_seconds) as device_seconds
from facts.container_hour as allocated
inner join facts.device_hour
    using (cluster, device_uuid, hour_start_at)
where device_hour.gpu_instance_id in (allocated.gpu_instance_id, '')
group by all
having allocated.observed_seconds > sum(device_hour.observed_seconds) + 0.001
