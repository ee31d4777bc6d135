-- A GPU or MIG instance that was given out to more than it is: ownership does not close; its hours are shared out all the same.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id
-- reads:  facts.finding_grant
-- params:
-- source: facts.overgrant
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   evidence         who had it
select
    cluster,
    device_uuid,
    gpu_instance_id,
    evidence
from facts.finding_grant
