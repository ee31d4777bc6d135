-- Over-allocated GPUs and MIG instances: ownership does not add up, but their hours are still split.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id
-- reads:  period.finding_access
-- source: facts.overallocation
-- columns: cluster, device_uuid, gpu_instance_id, evidence
--   evidence  holders at the same time
select columns('^(cluster|device_uuid|gpu_instance_id|evidence)$')
from period.finding_access
where code = 'GR108'
