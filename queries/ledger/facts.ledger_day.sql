-- GPU time of each state and holder per device and UTC day: facts.ledger_hour added over hours.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, outage, is_reserved, is_unsliced, stranding, activity, namespace, pod, pod_uid, hours_method
-- reads:  facts.ledger_hour
-- params: since_at, until_at
-- source: facts.ledger_hour
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU, or what of it is unsliced
--   day              UTC day
--   outage           why the GPU could not be used (day.device_outage); '' where it could
--   is_reserved      a claim has it and no container
--   is_unsliced      no MIG instance is made of it
--   stranding        why nobody who waited could have it (day.fragmented_gpu); '' where nobody waited, or one could
--   activity         inactive, effective, ineffective, busy (SM activity unknown), untold (no signal tells), or unseen
--   namespace        holder's namespace; '' where nobody holds it; of what is reserved the claim's
--   pod              holder's pod; '' likewise
--   pod_uid          its uid; '' where unknown
--   hours_method     how its hours are shared out: exclusive, granted_share, equal_share; '' where nobody has it
--   first_hour_at    UTC, start of the first hour
--   gpu_seconds      s of whole GPUs
with hour as (
    select *
    from facts.ledger_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    order by all
)

select
    cluster,
    device_uuid,
    gpu_instance_id,
    hour_start_at::date as day,
    outage,
    is_reserved,
    is_unsliced,
    stranding,
    activity,
    namespace,
    pod,
    pod_uid,
    hours_method,
    min(hour_start_at) as first_hour_at,
    sum(gpu_seconds) as gpu_seconds
from hour
group by all
