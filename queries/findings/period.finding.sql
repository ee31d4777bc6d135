-- Findings of all rules over the window in one table; report.finding adds the meaning of each code.
--
-- Each rule and workload has one finding; its evidence counts the pods and GPUs. Findings of throttled clocks (GR301 to GR303) are about the GPU: one
-- for each rule and GPU, for any holder. Hours of a GPU that pods share are those of the pod with most of them, because the others may have the same
-- hours.
--
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  period.finding_access, period.finding_error, period.finding_evidence, period.finding_quota, period.finding_strain, period.finding_wait,
--          period.finding_waste, period.workload
-- source: facts.finding_*
with each_rule as (
    select * from period.finding_waste
    union all by name
    select * from period.finding_evidence
    union all by name
    select * from period.finding_strain
    union all by name
    select * from period.finding_error
    union all by name
    select * from period.finding_access
    union all by name
    select * from period.finding_quota
    union all by name
    select * from period.finding_wait
),

-- A rule names only the columns of its own findings.
found as (
    select
        * exclude (detail, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, gpu_model),
        coalesce(columns('^(detail|namespace|pod|pod_uid|container|node_name|device_uuid|gpu_instance_id|gpu_model)$'), '') as "\0"
    from each_rule
),

named as (
    select
        found.* exclude (workload_kind, workload),
        found.code between 'GR301' and 'GR303' as is_of_gpu,
        found.pod != '' and not is_of_gpu as is_of_pod,
        coalesce(
            nullif(found.workload_kind, ''), if(is_of_pod, coalesce(workload.workload_kind, 'by name'), '')
        ) as workload_kind,
        coalesce(
            nullif(found.workload, ''), if(is_of_pod, coalesce(workload.workload, workload_by_name(found.pod)), '')
        ) as workload
    from found
    left join period.workload as workload
        using (cluster, namespace, pod, pod_uid)
),

counted as (
    select
        *,
        coalesce(is_shared, false) and row_number() over (
            partition by
                code, detail, cluster, if(is_of_gpu, [], [namespace, container]), workload_kind, workload, device_uuid, gpu_instance_id,
                coalesce(is_shared, false)
            order by gpu_hours desc nulls last
        ) > 1 as is_counted_with_another
    from named
)

select
    columns('^(code|detail|cluster)$'),
    only_one(min(namespace), max(namespace)) as namespace,
    workload_kind,
    workload,
    only_one(min(pod), max(pod)) as pod,
    only_one(min(pod_uid), max(pod_uid)) as pod_uid,
    only_one(min(container), max(container)) as container,
    if(min(node_name) != '' and count(distinct node_name) <= 3, string_agg(distinct node_name, ', ' order by node_name), '') as node_name,
    only_one(min(device_uuid), max(device_uuid)) as device_uuid,
    if(bool_or(is_of_gpu), '', only_one(min(gpu_instance_id), max(gpu_instance_id))) as gpu_instance_id,
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
    sum(gpu_hours) filter (where not is_counted_with_another) as gpu_hours,
    ['low', 'medium', 'high'][min(list_position(['low', 'medium', 'high'], confidence))] as confidence,
    if(count(*) = 1, any_value(evidence), concat_ws(
        '; ',
        nullif(concat_ws(
            ', ',
            if(min(pod) != '' and count(distinct pod || '/' || pod_uid) > 1, format('{:,} pods', count(distinct pod || '/' || pod_uid)), null),
            if(min(device_uuid) != '' and count(distinct device_uuid || '/' || gpu_instance_id) > 1, format(
                '{} {}', count(distinct device_uuid || '/' || gpu_instance_id), if(max(gpu_instance_id) = '', 'GPUs', 'instances')
            ), null)
        ), ''),
        'most GPU-hours ' || arg_min(if(pod = '', 'on ' || coalesce(nullif(gpu_model, ''), 'GPUs of unknown model'), 'in ' || pod), (-round(coalesce(gpu_hours, 0), 9), namespace, pod, evidence))
        || ': ' || arg_min(evidence, (-round(coalesce(gpu_hours, 0), 9), namespace, pod, evidence)),
        if(count(gpu_hours) between 1 and count(*) - 1, format('at least, because {:,} of {:,} have unknown GPU-hours', count(*) - count(gpu_hours), count(*)), null)
    )) as evidence,
    min(first_seen_at) as first_seen_at,
    max(severity) as severity
from counted
group by
    code,
    detail,
    cluster,
    workload_kind,
    workload,
    case
        when is_of_gpu then [node_name, device_uuid]
        when workload != '' then [namespace, container]
        else [namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id]
    end
