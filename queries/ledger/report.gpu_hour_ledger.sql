-- GPU-hours of capacity by bucket: each interval of each GPU in exactly one of ten buckets.
--
-- The dictionary defines each bucket as a figure (effective_gpu_hours, …). hours_method is the method that divides the hours of a shared GPU.
-- A MIG instance counts as its share of the GPU's compute slices.
--
-- grain:  cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid
-- reads:  period.ledger
-- columns: cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid, gpu_model, hours_method, gpu_hours
--   cause            why hours are unavailable (not_ready, cordoned, …), unknown or allocated_unmeasured (unseen, no_activity_signal, nobody_named, …), fragmented (unsliced, fragmented, …), or free without telemetry; else ''
select * exclude (first_hour_at, requested_gpu_hours)
from period.ledger
