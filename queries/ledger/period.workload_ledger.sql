-- GPU-hours of each workload on each GPU by bucket, over the window, for comparison with another period.
--
-- grain:  cluster, device_uuid, gpu_model, bucket, namespace, workload
-- reads:  period.ledger, period.workload
-- columns:
--   workload  kind/name; pod/uid for a pod without a workload; '' for unallocated time
select
    ledger.cluster,
    ledger.device_uuid,
    coalesce(ledger.gpu_model, '') as gpu_model,
    ledger.bucket,
    ledger.namespace,
    case
        when workload.workload != '' then workload.workload_kind || '/' || workload.workload
        when ledger.pod != '' then ledger.pod || '/' || ledger.pod_uid
        else ''
    end as workload,
    max(workload.team) as team,
    sum(ledger.gpu_hours) as gpu_hours
from period.ledger as ledger
left join period.workload as workload
    using (cluster, namespace, pod, pod_uid)
group by all
