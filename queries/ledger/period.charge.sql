-- GPU-hours of the ledger and their cost by day, node, model and workload.
--
-- grain:  cluster, node_name, gpu_model, day, namespace, workload_kind, workload, bucket, hours_method
-- reads:  period.ledger, period.price, period.team, period.workload
-- source: period.ledger; prices: period.price
-- columns:
--   namespace      holder's namespace; '' where unallocated
--   workload_kind  kind of the workload; '' where unallocated
--   workload       name of the workload; '' where unallocated
--   bucket         as in report.gpu_hour_ledger
--   hours_method   method that divides the hours of a shared GPU; '' where unallocated
--   team           the namespace's team, else the namespace; '' where unallocated
--   gpu_hours      h of whole GPUs
--   requested_gpu_hours  h of gpu_hours that only requests show, without telemetry
select
    ledger.cluster,
    ledger.node_name,
    coalesce(ledger.gpu_model, '') as gpu_model,
    ledger.day,
    ledger.namespace,
    coalesce(workload.workload_kind, '') as workload_kind,
    coalesce(workload.workload, '') as workload,
    ledger.bucket,
    ledger.hours_method,
    any_value(coalesce(nullif(team.team, ''), ledger.namespace)) as team,
    sum(ledger.gpu_hours) as gpu_hours,
    sum(ledger.requested_gpu_hours) as requested_gpu_hours,
    any_value(price.hour_cost) as hour_cost,
    sum(ledger.gpu_hours * price.hour_cost) as hours_cost
from period.ledger as ledger
left join period.price as price on coalesce(ledger.gpu_model, '') = price.gpu_model and ledger.day = price.day
left join period.workload as workload
    using (cluster, namespace, pod, pod_uid)
left join period.team as team
    using (cluster, namespace)
group by all
