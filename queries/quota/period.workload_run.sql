-- Attempts of Kueue's Workloads in the window, one row each: last day's state, with times of queueing and holding back from the first days.
--
-- grain:  cluster, workload_uid, queued_at
-- reads:  facts.workload_run
-- params: since_at, until_at
select
    columns('^(cluster|workload_uid|queued_at)$'),
    if(max(end_reason) = 'Held', min(ended_at), max(ended_at)) as ended_at,
    max(columns('^(namespace|workload|replaces|reserved_at|running_at|held_until_at|end_reason|preempt.*)$')) as "\0",
    arg_max(columns('_queue$|^priority|_message$|request_gpus$'), (coalesce(day, queued_at), columns('_queue$|^priority|_message$|request_gpus$'))) as "\0"
from (select * replace (if(reserved_at is null, queued_at, max(queued_at) over (partition by cluster, workload_uid, reserved_at)) as queued_at) from facts.workload_run) as run
where queued_at < $until_at and coalesce(if(end_reason = 'Held', held_until_at, ended_at), 'infinity'::timestamp) > $since_at
group by cluster, workload_uid, queued_at
