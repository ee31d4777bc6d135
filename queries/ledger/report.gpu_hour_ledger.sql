-- GPU-hours of capacity by bucket: each interval of each GPU in exactly one of ten buckets.
--
-- The dictionary defines each bucket as a figure (effective_gpu_hours, …). hours_method is the method that divides the hours of a shared GPU.
-- A MIG instance counts as its share of the GPU's compute slices.
--
-- grain:  cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid
-- reads:  period.ledger
-- columns: cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid, gpu_model, hours_method, gpu_hours
--   cause            cause of unavailable, unknown, allocated_unmeasured or fragmented hours, or of missing telemetry for free hours; else ''
select * exclude (first_hour_at)
from period.ledger
