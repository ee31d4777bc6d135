-- Findings of one GPU with more GPU-hours at stake than the period's hours.
--
-- severity: warn
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  report.finding
-- params: since_at, until_at
-- source: report.finding; a GPU has one GPU-hour an hour, and facts are of whole hours
-- columns: code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail, gpu_hours
select columns('^(code|cluster|namespace|workload_kind|workload|pod|pod_uid|container|node_name|device_uuid|gpu_instance_id|detail|gpu_hours)$')
from report.finding
where
    device_uuid != ''
    and gpu_hours > 1.000001 * date_diff('hour', date_trunc('hour', $since_at::timestamp), $until_at::timestamp + interval 3599999 millisecond)
