-- Findings that are new since the previous period, and findings that are resolved.
--
-- A finding is the same if its code and subject are the same. Pods and GPUs of a workload do not matter, nor do pods of a GPU.
--
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  period.finding, previous.capacity, previous.finding
-- params: finding_rules
-- source: period.finding of both windows; rules: queries/catalog/finding.csv
-- columns: code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail,
--          change, title, severity, evidence, previous_gpu_hours, gpu_hours, unknown_reasons
--   change             new, resolved or stayed
with rule as (
    select unnest(from_json(
        $finding_rules::json, '[{"code": "VARCHAR", "title": "VARCHAR", "severity": "VARCHAR"}]'
    ), recursive := true)
),

either as (
    select
        * exclude (period),
        period = 'now' as is_now
    from both_periods(previous.finding, period.finding)
    where cluster in (select before.cluster from previous.capacity as before)
),

reported as (
    select
        unnest(arg_max(either, is_now)),
        case when bool_and(is_now) then 'new' when bool_or(is_now) then 'stayed' else 'resolved' end as change,
        max(gpu_hours) filter (where not is_now) as previous_gpu_hours,
        max(gpu_hours) filter (where is_now) as later_gpu_hours
    from either
    group by
        code,
        cluster,
        detail,
        case
            when workload != '' then [namespace, workload_kind, workload, container]
            when device_uuid != '' then [node_name, device_uuid, gpu_instance_id]
            else [namespace, pod, pod_uid, container, node_name]
        end
)

select
    reported.* similar to '^(code|cluster|namespace|workload.*|pod.*|container|node_name|device_uuid|gpu_instance_id|detail|change)$',
    rule.title,
    coalesce(reported.severity, rule.severity) as severity,
    reported.evidence,
    reported.previous_gpu_hours,
    reported.later_gpu_hours as gpu_hours,
    unknown_reasons([
        ('previous_gpu_hours', if(reported.previous_gpu_hours is null, if(reported.change = 'new', 'not_found', 'not_estimated'), null)),
        ('gpu_hours', if(reported.later_gpu_hours is null, if(reported.change = 'resolved', 'not_found', 'not_estimated'), null))
    ]) as unknown_reasons
from reported
left join rule
    using (code)
