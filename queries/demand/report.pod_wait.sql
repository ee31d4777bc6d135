-- Waits of pods for accelerators, created to placed and placed to running, by size of the request in GPUs.
--
-- Pods that got a node in the window, started in it, or still wait. at_least lists the quantiles that are lower bounds, because pods
-- still wait.
--
-- grain:  cluster, size
-- reads:  period.wait
-- source: period.wait
-- columns: cluster, size, placed_pod_count, waiting_pod_count, placing_seconds_p50, placing_seconds_p90, placing_seconds_p95,
--          placing_seconds_max, at_least, waiting_seconds_max, pending_gpu_hours, started_pod_count, starting_seconds_p50,
--          starting_seconds_p90, starting_seconds_p95, starting_seconds_max, refused_pod_count, unknown_reasons
--   waiting_pod_count  pods that last waited for a node
select
    *,
    -- A quantile without pods is null, because no pod waited.
    unknown_reasons(
        [
            ('placing_seconds_max', if(placing_seconds_max is null, 'no_pod', null)),
            ('waiting_seconds_max', if(waiting_seconds_max is null, 'no_pod', null)),
            ('pending_gpu_hours', if(pending_gpu_hours is null, 'not_collected', null)),
            ('started_pod_count', if(started_pod_count is null, 'not_collected', null))
        ]
        || [(name, if(placing_seconds_p50 is null, 'no_pod', null)) for name in ['placing_seconds_p50', 'placing_seconds_p90', 'placing_seconds_p95']]
        || [
            (name, if(started_pod_count is null, 'not_collected', if(starting_seconds_p50 is null, 'no_pod', null)))
            for name in ['starting_seconds_p50', 'starting_seconds_p90', 'starting_seconds_p95', 'starting_seconds_max']
        ]
    ) as unknown_reasons
from period.wait
