-- Findings that are new since the previous period, and findings that are resolved.
--
-- A finding is the same if its code and everything that it is about are the same; for those that stayed, the hours say whether they grew.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  period.finding, previous.capacity, previous.finding
-- params: finding_rules
-- source: period.finding of both windows; rules: queries/catalog/finding.csv
-- columns: code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail, change, title, severity,
--          evidence, earlier_gpu_hours, gpu_hours, unknown_reasons
--   namespace          namespace of the workload; '' where it is about a node or GPU
--   pod                its pod; '' likewise
--   pod_uid            its uid; '' likewise, and where unknown
--   container          its container; '' where it is about all of the pod, or about a node or GPU
--   node_name          node; several are listed; '' where it is about more
--   device_uuid        UUID of the physical GPU; '' where it is about several
--   change             new, resolved or stayed
--   evidence           the numbers, as a sentence; of what is resolved those of the previous period
--   earlier_gpu_hours  h of whole GPUs at stake in the previous period, not scaled
with rule as (
    select unnest(from_json(
        $finding_rules::json, '[{"code": "VARCHAR", "title": "VARCHAR", "severity": "VARCHAR"}]'
    ), recursive := true)
),

now as (
    select *
    from period.finding
    where cluster in (select before.cluster from previous.capacity as before)
),

paired as (
    select
        coalesce(now.code, earlier.code) as code,
        coalesce(now.cluster, earlier.cluster) as cluster,
        coalesce(now.namespace, earlier.namespace) as namespace,
        coalesce(now.pod, earlier.pod) as pod,
        coalesce(now.pod_uid, earlier.pod_uid) as pod_uid,
        coalesce(now.container, earlier.container) as container,
        coalesce(now.node_name, earlier.node_name) as node_name,
        coalesce(now.device_uuid, earlier.device_uuid) as device_uuid,
        coalesce(now.gpu_instance_id, earlier.gpu_instance_id) as gpu_instance_id,
        coalesce(now.detail, earlier.detail) as detail,
        case when earlier.code is null then 'new' when now.code is null then 'resolved' else 'stayed' end as change,
        coalesce(now.severity, earlier.severity) as severity,
        coalesce(now.evidence, earlier.evidence) as evidence,
        earlier.gpu_hours as earlier_gpu_hours,
        now.gpu_hours
    from previous.finding as earlier
    full join now
        using (code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail)
)

select
    paired.* exclude (severity, evidence, earlier_gpu_hours, gpu_hours),
    rule.title,
    coalesce(paired.severity, rule.severity) as severity,
    paired.evidence,
    paired.earlier_gpu_hours,
    paired.gpu_hours,
    unknown_reasons(map {
        'earlier_gpu_hours': if(paired.earlier_gpu_hours is null, if(paired.change = 'new', 'not_found', 'not_estimated'), null),
        'gpu_hours': if(paired.gpu_hours is null, if(paired.change = 'resolved', 'not_found', 'not_estimated'), null)
    }) as unknown_reasons
from paired
left join rule on paired.code = rule.code
