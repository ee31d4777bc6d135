-- GPU time of each state and holder per device and UTC day: facts.ledger_hour added over hours.
--
-- revision: 5
-- grain:  cluster, device_uuid, gpu_instance_id, day, outage, is_reserved, is_unsliced, stranding, activity, namespace, pod, pod_uid, hours_method
-- reads:  facts.ledger_hour
-- params: since_at, until_at
-- columns: cluster, device_uuid, gpu_instance_id, day, is_unsliced, activity, outage, is_reserved, stranding, namespace, pod, pod_uid,
--          hours_method, first_hour_at, gpu_seconds
with hour as (
    select *
    from facts.ledger_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    order by all
)

select
    columns('^(cluster|device_uuid|gpu_instance_id)$'),
    hour_start_at::date as day,
    * exclude (cluster, device_uuid, gpu_instance_id, hour_start_at, gpu_seconds),
    min(hour_start_at) as first_hour_at,
    sum(gpu_seconds) as gpu_seconds
from hour
group by all
