-- Kueue's Workloads that wait at the end of the window, in queue order: requests ahead of each, and workloads with the GPUs.
--
-- A ClusterQueue takes higher priority first (default 0), then the older request. A slice of an elastic job waits for its additional GPUs while the
-- slice that it replaces has quota.
--
-- grain:  cluster, cluster_queue, ahead_count
-- reads:  facts.quota_pair_hour, period.workload_run
-- params: until_at
-- source: Kueue's Workloads; facts.quota_pair_hour
-- columns: cluster, cluster_queue, ahead_count, namespace, local_queue, workload, workload_uid, priority_class, priority, queued_at, waiting_seconds,
--          request_gpus, ahead_gpus, allocated_gpus, allocated_to, borrowers, waiting_message, unknown_reasons
--   waiting_seconds  s since the request
--   ahead_gpus       GPUs of the requests ahead of it; null where one is unknown
--   allocated_to     three largest workloads of the queue with quota, and their GPUs
with run as (
    select
        *,
        coalesce(reserved_at >= $until_at, true) as is_waiting
    from period.workload_run
    where queued_at < $until_at and coalesce(ended_at >= $until_at, true)
),

waiting as (
    select run.* replace (coalesce(run.waiting_request_gpus, run.request_gpus) - if(slice.workload is null, 0, slice.request_gpus) as request_gpus)
    from run
    left join run as slice
        on run.cluster = slice.cluster and run.replaces = slice.namespace || '/' || slice.workload and not slice.is_waiting
    where run.is_waiting
),

ordered as (
    select
        *,
        count(*) over ahead as ahead_count,
        count(request_gpus) over ahead as sized_count,
        sum(request_gpus) over ahead as ahead_gpus
    from waiting
    window
        ahead as (
            partition by cluster, cluster_queue
            order by coalesce(priority, 0) desc, queued_at asc, workload_uid asc
            rows between unbounded preceding and 1 preceding
        )
),

allocated as (
    select
        cluster,
        cluster_queue,
        if(count(request_gpus) = count(*), sum(request_gpus), null) as allocated_gpus,
        array_to_string(list(
            concat(namespace, '/', workload, format(' {:g}', request_gpus))
            order by request_gpus desc nulls last, namespace asc, workload asc
        )[:3], ', ') as allocated_to
    from run
    where not is_waiting
    group by all
),

lent as (
    select
        cluster,
        quota as cluster_queue,
        borrower,
        sum(contested_native_hours * gpus_per_native) as contested_gpu_hours
    from facts.quota_pair_hour
    where system = 'kueue' and hour_start_at >= $until_at - interval 1 hour and hour_start_at < $until_at
    group by all
),

behind as (
    select
        cluster,
        cluster_queue,
        string_agg(borrower, ', ' order by contested_gpu_hours desc, borrower asc) as borrowers
    from lent
    group by all
)

select
    columns('^(cluster|cluster_queue|ahead_count)$'),
    columns('^(namespace|local_queue|workload|workload_uid|priority_class)$'),
    coalesce(priority, 0)::bigint as priority,
    queued_at,
    epoch_ms($until_at - queued_at) / 1000 as waiting_seconds,
    request_gpus,
    if(sized_count = ahead_count, coalesce(ahead_gpus, 0), null)::double as ahead_gpus,
    if(allocated_to is null, 0, allocated_gpus)::double as allocated_gpus,
    coalesce(allocated_to, '') as allocated_to,
    coalesce(borrowers, '') as borrowers,
    coalesce(waiting_message, '') as waiting_message,
    unknown_reasons([
        ('request_gpus', if(request_gpus is null, 'no_gpu_equivalent', null)),
        ('ahead_gpus', if(sized_count < ahead_count, 'no_gpu_equivalent', null)),
        ('allocated_gpus', if(allocated_to is not null and allocated.allocated_gpus is null, 'no_gpu_equivalent', null))
    ]) as unknown_reasons
from ordered
left join allocated
    using (cluster, cluster_queue)
left join behind
    using (cluster, cluster_queue)
order by all
