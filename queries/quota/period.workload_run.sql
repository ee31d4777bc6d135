-- Attempts of Kueue's Workloads in the window, each once with what the last of its days knew.
--
-- grain:  cluster, workload_uid, queued_at
-- reads:  facts.workload_run
-- params: since_at, until_at
-- source: facts.workload_run
-- columns:
--   ended_at      UTC, when it ended; null where it went on
--   end_reason    why it ended; '' where it went on
--   request_gpus  GPUs that it requested
select
    cluster,
    max(cluster_queue) as cluster_queue,
    max(namespace) as namespace,
    max(local_queue) as local_queue,
    max(workload) as workload,
    workload_uid,
    max(priority) as priority,
    max(priority_class) as priority_class,
    queued_at,
    max(reserved_at) as reserved_at,
    max(running_at) as running_at,
    max(ended_at) as ended_at,
    max(end_reason) as end_reason,
    max(preemption_reason) as preemption_reason,
    max(preemptor_uid) as preemptor_uid,
    max(waiting_message) as waiting_message,
    max(request_gpus) as request_gpus
from facts.workload_run
where queued_at < $until_at and coalesce(ended_at, 'infinity'::timestamp) > $since_at
group by cluster, workload_uid, queued_at
