-- Devices with a holder and without samples: their figures are missing from the report.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  facts.device_hour, facts.ownership
-- params: since_at, until_at
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, end_at
select
    ownership.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at)$',
    ownership.end_at
from facts.ownership
asof left join facts.device_hour
    on
        ownership.cluster = device_hour.cluster
        and ownership.device_uuid = device_hour.device_uuid
        and ownership.end_at > device_hour.hour_start_at
where
    -- The last hour with samples before its end reaches into it, or none does.
    coalesce(device_hour.hour_start_at + interval 1 hour <= ownership.start_at, true)
    and overlap_ms(ownership.start_at, ownership.end_at, $since_at::timestamp, $until_at::timestamp) > 0
