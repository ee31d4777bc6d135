-- Everything that the rules of findings say of the window, in one table; report.finding adds what each code means.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.finding_access, facts.finding_error, facts.finding_evidence, facts.finding_fit, facts.finding_grant, facts.finding_quota, facts.finding_strain, facts.finding_trend, facts.finding_wait, facts.finding_waste
-- params:
-- source: facts.finding_*
-- columns:
--   code             which finding; docs/operations.md lists them
--   detail           what more tells it from others of its code; '' mostly
--   cluster          cluster name
--   namespace        namespace of the workload; '' where it is about a node or GPU
--   pod              its pod; '' likewise
--   pod_uid          its uid; '' likewise, and where unknown
--   container        its container; '' where it is about all of the pod, or about a node or GPU
--   node_name        node; several are listed; '' where it is about more
--   device_uuid      UUID of the physical GPU; '' where it is about several
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   gpu_model        model; several are listed
--   gpu_hours        h of whole GPUs at stake; null where that cannot be told
--   confidence       high, medium or low
--   evidence         the numbers, as a sentence
--   first_seen_at    UTC, the first hour of the window that has it; its day where the hour is not known
--   severity         info, warning or critical, where it is not the code's; else null
select * from facts.finding_waste
union all by name
select * from facts.finding_evidence
union all by name
select * from facts.finding_strain
union all by name
select * from facts.finding_error
union all by name
select * from facts.finding_fit
union all by name
select * from facts.finding_trend
union all by name
select * from facts.finding_access
union all by name
select * from facts.finding_quota
union all by name
select * from facts.finding_wait
union all by name
select * from facts.finding_grant
