-- Devices with a holder and without samples: the report has no figures of them.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  facts.device_hour, facts.ownership
-- params: since_at, until_at
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, end_at
select
    columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at)$'),
    end_at
from (
    from facts.ownership
    anti join facts.device_hour
        on
            ownership.cluster = device_hour.cluster
            and ownership.device_uuid = device_hour.device_uuid
            -- Most owners have samples in their last hour: only for others are all hours searched.
            and date_trunc('hour', ownership.end_at - interval 1 microsecond) = device_hour.hour_start_at
    where overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp) > 0
) as owned
anti join facts.device_hour
    on
        owned.cluster = device_hour.cluster
        and owned.device_uuid = device_hour.device_uuid
        and owned.end_at > device_hour.hour_start_at
        and owned.start_at < device_hour.hour_start_at + interval 1 hour
