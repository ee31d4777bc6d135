-- Over-allocated GPUs and MIG instances: ownership does not close, and their hours are split all the same.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id
-- reads:  period.finding_grant
-- params:
-- source: facts.overallocation
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
from period.finding_grant
