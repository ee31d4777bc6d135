-- Containers observed on a device for longer than the device was.
--
-- On a MIG instance its time is the instance's, and the board's where the instance is silent.
--
-- severity: fail
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  facts.container_hour, facts.device_hour
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at, observed_seconds, device_seconds
--   observed_seconds  s in which the device was seen while held
select
    allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at|observed_seconds)$',
    sum(device_hour.observed_seconds) as device_seconds
from facts.container_hour as allocated
inner join facts.device_hour
    using (cluster, device_uuid, hour_start_at)
where device_hour.gpu_instance_id in (allocated.gpu_instance_id, '')
group by all
having allocated.observed_seconds > sum(device_hour.observed_seconds) + 0.001
