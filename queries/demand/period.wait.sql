-- Waits of pods for accelerators in the window, created to placed and placed to running, by size of the request in GPUs.
--
-- Pods that got a node in the window, started in it, or still wait; these count with their wait so far. Quantiles are interpolated between
-- pods. at_least lists the quantiles that are lower bounds: they would be longer if the waiting pods never got a node.
--
-- grain:  cluster, size
-- reads:  period.pod_wait
-- source: period.pod_wait
-- columns:
--   waiting_pod_count  pods that last waited for a node
select
    columns('^(cluster|size)$'),
    count(*) filter (where is_placed) as placed_pod_count,
    count(*) filter (where is_waiting) as waiting_pod_count,
    quantile_cont(coalesce(waiting_seconds, placing_seconds), 0.5) filter (where is_placed or is_waiting) as placing_seconds_p50,
    quantile_cont(coalesce(waiting_seconds, placing_seconds), 0.9) filter (where is_placed or is_waiting) as placing_seconds_p90,
    quantile_cont(coalesce(waiting_seconds, placing_seconds), 0.95) filter (where is_placed or is_waiting) as placing_seconds_p95,
    max(placing_seconds) filter (where is_placed) as placing_seconds_max,
    concat_ws(
        ', ',
        if(quantile_cont(if(is_waiting, 1e18, placing_seconds), 0.5) filter (where is_placed or is_waiting) > placing_seconds_p50, 'p50', null),
        if(quantile_cont(if(is_waiting, 1e18, placing_seconds), 0.9) filter (where is_placed or is_waiting) > placing_seconds_p90, 'p90', null),
        if(quantile_cont(if(is_waiting, 1e18, placing_seconds), 0.95) filter (where is_placed or is_waiting) > placing_seconds_p95, 'p95', null)
    ) as at_least,
    max(waiting_seconds) as waiting_seconds_max,
    sum(pending_gpu_hours) as pending_gpu_hours,
    if(bool_or(is_started is null), null, count(*) filter (where is_started)) as started_pod_count,
    quantile_cont(starting_seconds, 0.5) filter (where is_started) as starting_seconds_p50,
    quantile_cont(starting_seconds, 0.9) filter (where is_started) as starting_seconds_p90,
    quantile_cont(starting_seconds, 0.95) filter (where is_started) as starting_seconds_p95,
    max(starting_seconds) filter (where is_started) as starting_seconds_max,
    count(*) filter (where is_refused) as refused_pod_count
from period.pod_wait
group by all
