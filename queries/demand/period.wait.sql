-- Waits of pods for accelerators in the window, created to placed and placed to running, by GPU model and size of the request.
--
-- Pods that were given a place in the window, and pods that began to run in it; those that still wait at its end stand apart. Quantiles are
-- interpolated between pods.
--
-- grain:  cluster, gpu_model, resource, requested_units
-- reads:  period.pod_wait
-- params:
-- source: period.pod_wait
-- columns: cluster, gpu_model, resource, requested_units, placed_pod_count, placing_seconds_p50, placing_seconds_p90, placing_seconds_p95,
--          placing_seconds_max, started_pod_count, starting_seconds_p50, starting_seconds_p90, starting_seconds_p95, starting_seconds_max,
--          waiting_pod_count, waiting_seconds_max, refused_pod_count
--   gpu_model          model of the GPUs that they were given; '' while they wait, or where unknown
--   resource           what they asked for
--   requested_units    units of it by each pod
--   placed_pod_count   pods that were given a place in the window
--   waiting_pod_count  pods that were last seen waiting for a place
--   refused_pod_count  those of all these for which the scheduler found no place at some time
select
    cluster,
    gpu_model,
    resource,
    requested_units,
    count(*) filter (where is_placed) as placed_pod_count,
    quantile_cont(placing_seconds, 0.5) filter (where is_placed) as placing_seconds_p50,
    quantile_cont(placing_seconds, 0.9) filter (where is_placed) as placing_seconds_p90,
    quantile_cont(placing_seconds, 0.95) filter (where is_placed) as placing_seconds_p95,
    max(placing_seconds) filter (where is_placed) as placing_seconds_max,
    count(*) filter (where is_started) as started_pod_count,
    quantile_cont(starting_seconds, 0.5) filter (where is_started) as starting_seconds_p50,
    quantile_cont(starting_seconds, 0.9) filter (where is_started) as starting_seconds_p90,
    quantile_cont(starting_seconds, 0.95) filter (where is_started) as starting_seconds_p95,
    max(starting_seconds) filter (where is_started) as starting_seconds_max,
    count(*) filter (where is_waiting) as waiting_pod_count,
    max(waiting_seconds) filter (where is_waiting) as waiting_seconds_max,
    count(*) filter (where is_refused) as refused_pod_count
from period.pod_wait
group by all
