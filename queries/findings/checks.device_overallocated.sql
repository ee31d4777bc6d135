-- Over-allocated GPUs and MIG instances: ownership does not close, and their hours are split all the same.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id
-- reads:  period.finding_access
-- source: facts.overallocation
-- columns: cluster, device_uuid, gpu_instance_id, evidence
--   evidence  who had it
select columns('^(cluster|device_uuid|gpu_instance_id|evidence)$')
from period.finding_access
where code = 'GR108'
