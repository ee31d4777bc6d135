-- Waits of pods for accelerators, created to placed and placed to running, by size of the request in GPUs.
--
-- Pods that were given a node in the window, those that still wait, and pods that began to run in it. at_least names the
-- quantiles that are lower bounds, because pods still wait. Quantiles are interpolated between pods.
--
-- grain:  cluster, size
-- reads:  period.wait
-- source: period.wait
-- columns: cluster, size, placed_pod_count, waiting_pod_count, placing_seconds_p50, placing_seconds_p90, placing_seconds_p95,
--          placing_seconds_max, at_least, waiting_seconds_max, pending_gpu_hours, started_pod_count, starting_seconds_p50,
--          starting_seconds_p90, starting_seconds_p95, starting_seconds_max, refused_pod_count, unknown_reasons
--   placed_pod_count   pods that were given a node in the window
--   waiting_pod_count  pods that were last seen waiting for a node
--   refused_pod_count  those of all these for which the scheduler found no node at some time
select
    *,
    -- What no pod did took no time: a quantile of nothing.
    unknown_reasons([
        ('placing_seconds_p50', if(placing_seconds_p50 is null, 'no_pod', null)),
        ('placing_seconds_p90', if(placing_seconds_p90 is null, 'no_pod', null)),
        ('placing_seconds_p95', if(placing_seconds_p95 is null, 'no_pod', null)),
        ('placing_seconds_max', if(placing_seconds_max is null, 'no_pod', null)),
        ('waiting_seconds_max', if(waiting_seconds_max is null, 'no_pod', null)),
        ('pending_gpu_hours', if(pending_gpu_hours is null, 'not_collected', null)),
        ('starting_seconds_p50', if(starting_seconds_p50 is null, 'not_collected', null)),
        ('starting_seconds_p90', if(starting_seconds_p90 is null, 'not_collected', null)),
        ('starting_seconds_p95', if(starting_seconds_p95 is null, 'not_collected', null)),
        ('starting_seconds_max', if(starting_seconds_max is null, 'not_collected', null))
    ]) as unknown_reasons
from period.wait
