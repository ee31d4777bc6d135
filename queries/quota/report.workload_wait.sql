-- Wait of Kueue's Workloads for quota by LocalQueue and priority class, and from quota to the first running pod.
--
-- An attempt waits until it gets quota, ends or is held back. A slice of an elastic job waits for its additional GPUs while the slice that it
-- replaces has quota. Percentiles: known waits of attempts that get quota in the window.
--
-- grain:  cluster, cluster_queue, namespace, local_queue, priority_class
-- reads:  period.workload_run
-- params: since_at, until_at
-- source: Kueue's Workloads
-- columns: cluster, cluster_queue, namespace, local_queue, priority_class, attempt_count, reserved_count, waiting_count, held_count,
--          wait_seconds_p50, wait_seconds_p90, wait_seconds_p95, waiting_seconds_max, start_seconds_p50, pending_gpu_hours, unknown_reasons
--   reserved_count       attempts that get quota in the window
--   waiting_count        attempts that still wait at the window's end
--   held_count           attempts in a held queue
--   waiting_seconds_max  s, longest wait of waiting_count
--   pending_gpu_hours    GPU-h requested and waiting in the window
with judged as (
    select
        *,
        reserved_at >= $since_at and reserved_at < $until_at as is_reserved,
        coalesce(reserved_at, ended_at, 'infinity'::timestamp) >= $until_at as is_waiting,
        -- A later attempt that has quota at once was evicted or resumed between two snapshots, at an unknown time.
        if(queued_at = reserved_at and lag(queued_at) over (
            partition by cluster, workload_uid
            order by queued_at
        ) is not null, null, epoch_ms(reserved_at - queued_at) / 1000) as wait_seconds,
        epoch_ms(running_at - reserved_at) / 1000 as start_seconds,
        greatest(queued_at, $since_at::timestamp) as pending_from_at,
        least(reserved_at, ended_at, $until_at::timestamp) as pending_until_at,
        coalesce(waiting_request_gpus, request_gpus) * overlap_ms(pending_from_at, pending_until_at, pending_from_at, pending_until_at) - (
            select
                if(count(slice.request_gpus) = count(*), coalesce(sum(least(run.request_gpus, slice.request_gpus) * overlap_ms(
                    pending_from_at, pending_until_at, slice.reserved_at, coalesce(slice.ended_at, $until_at::timestamp)
                )), 0), null)
            from period.workload_run as slice
            where
                (slice.cluster, slice.namespace || '/' || slice.workload) = (run.cluster, run.replaces)
                and slice.reserved_at < pending_until_at
                and coalesce(slice.ended_at > pending_from_at, true)
        ) as pending_gpu_ms
    from period.workload_run as run
),

summed as (
    select
        columns('^(cluster|cluster_queue|namespace|local_queue|priority_class)$'),
        count(*) as attempt_count,
        count(*) filter (where is_reserved) as reserved_count,
        count(*) filter (where is_waiting) as waiting_count,
        count(*) filter (where end_reason = 'Held' and not is_waiting) as held_count,
        quantile_cont(wait_seconds, 0.5) filter (where is_reserved) as wait_seconds_p50,
        quantile_cont(wait_seconds, 0.9) filter (where is_reserved) as wait_seconds_p90,
        quantile_cont(wait_seconds, 0.95) filter (where is_reserved) as wait_seconds_p95,
        max(epoch_ms($until_at - queued_at) / 1000) filter (where is_waiting) as waiting_seconds_max,
        quantile_cont(start_seconds, 0.5) filter (where is_reserved) as start_seconds_p50,
        if(count(pending_gpu_ms) = count(*), sum(pending_gpu_ms) / 3600000, null) as pending_gpu_hours
    from judged
    group by all
)

select
    *,
    unknown_reasons([(name, if(reserved_count = 0, 'nothing_reserved', if(wait_seconds_p50 is null, 'not_observed', null))) for name in ['wait_seconds_p50', 'wait_seconds_p90', 'wait_seconds_p95']] || [
        ('waiting_seconds_max', if(waiting_seconds_max is null, 'nothing_waits', null)),
        ('start_seconds_p50', if(start_seconds_p50 is null, 'not_observed', null)),
        ('pending_gpu_hours', if(pending_gpu_hours is null, 'no_gpu_equivalent', null))
    ]) as unknown_reasons
from summed
