-- Findings of all rules over the window in one table; report.finding adds the meaning of each code.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  period.finding_access, period.finding_error, period.finding_evidence, period.finding_fit, period.finding_grant, period.finding_quota, period.finding_strain, period.finding_trend, period.finding_wait, period.finding_waste
-- params:
-- source: facts.finding_*
-- columns:
--   namespace    namespace of the workload; '' where it is about a node or GPU
--   pod          its pod; '' likewise
--   pod_uid      its uid; '' likewise, and where unknown
--   container    its container; '' where it is about all of the pod, or about a node or GPU
--   node_name    node; several are listed; '' where it is about more
--   device_uuid  UUID of the physical GPU; '' where it is about several
--   gpu_model    model; several are listed
--   severity     info, warning or critical, where it is not the code's; else null
select * from period.finding_waste
union all by name
select * from period.finding_evidence
union all by name
select * from period.finding_strain
union all by name
select * from period.finding_error
union all by name
select * from period.finding_fit
union all by name
select * from period.finding_trend
union all by name
select * from period.finding_access
union all by name
select * from period.finding_quota
union all by name
select * from period.finding_wait
union all by name
select * from period.finding_grant
