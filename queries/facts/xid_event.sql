-- Every XID error that appeared on a device: a change to a new non-zero code.
--
-- A lower bound: the same code twice in a row shows as one.
--
-- grain:  cluster, device_uuid, gpu_instance_id, seen_at
-- reads:  lake.device_sample
-- params:
-- source: DCGM_FI_DEV_XID_ERRORS; codes: NVIDIA XID catalogue
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   seen_at          UTC, the scrape that first showed the code
--   xid_code         the code
select
    cluster,
    device_uuid,
    gpu_instance_id,
    seen_at::timestamp as seen_at,
    xid_event_code as xid_code
from lake.device_sample
where xid_event_code is not null
