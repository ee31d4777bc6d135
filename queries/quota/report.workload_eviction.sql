-- Evictions of Kueue's Workloads by queue, reason and the preemptor's queue.
--
-- grain:  cluster, cluster_queue, reason, preemption_reason, preemptor_queue
-- reads:  period.workload_run
-- params: since_at, until_at
-- source: Kueue's Workloads; the preemptor is named by Kueue's message
-- columns: cluster, cluster_queue, reason, preemption_reason, preemptor_queue, evicted_count, lost_gpu_hours, unknown_reasons
--   cluster_queue      ClusterQueue that lost the workload
--   reason             Preempted, PodsReadyTimeout, AdmissionCheck, …
--   evicted_count      workloads evicted
--   lost_gpu_hours     GPU-h since they last got quota: all of it, because saved progress is unknown
with queue as (
    select
        cluster,
        workload_uid,
        max(cluster_queue) as cluster_queue
    from period.workload_run
    group by all
)

select
    run.cluster,
    run.cluster_queue,
    run.end_reason as reason,
    run.preemption_reason,
    coalesce(queue.cluster_queue, '') as preemptor_queue,
    count(*) as evicted_count,
    if(count(run.request_gpus) = count(*), sum(run.request_gpus * epoch_ms(run.ended_at - run.reserved_at)) / 3600000, null)::double as lost_gpu_hours,
    unknown_reasons([('lost_gpu_hours', if(lost_gpu_hours is null, 'no_gpu_equivalent', null))]) as unknown_reasons
from period.workload_run as run
left join queue
    on
        run.cluster = queue.cluster
        and run.preemptor_uid = queue.workload_uid
where
    run.ended_at >= $since_at
    and run.ended_at < $until_at
    and run.reserved_at is not null
    and run.end_reason not in ('', 'Finished', 'Deleted')
group by all
