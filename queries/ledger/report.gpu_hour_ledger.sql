-- GPU-hours of capacity by bucket: each interval of each GPU in exactly one of ten buckets.
--
-- Figures of the buckets' names (effective_gpu_hours, ...) say what they are. Hours of a shared GPU are divided as hours_method says; a MIG
-- instance counts its share of its GPU's compute slices.
--
-- grain:  cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid
-- reads:  period.ledger
-- columns: cluster, node_name, device_uuid, gpu_instance_id, day, bucket, cause, namespace, pod, pod_uid, gpu_model, hours_method, gpu_hours
--   cause            why it is unavailable (not_ready, cordoned, …), unknown or allocated_unmeasured (unseen, no_activity_signal, nobody_named, …) or fragmented (unsliced, fragmented, …); of what is free without telemetry why; '' else
select * exclude (first_hour_at)
from period.ledger
