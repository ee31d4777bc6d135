-- Waits of pods for accelerators, created to placed and placed to running, by GPU model and size of the request.
--
-- Pods that were given a node in the window, and pods that began to run in it. Those that still wait at its end are counted apart and are
-- in no quantile, so where many wait the quantiles describe the lucky ones. Quantiles are interpolated between pods.
--
-- grain:  cluster, gpu_model, resource, requested_units
-- reads:  period.wait
-- params:
-- source: period.wait
-- columns: cluster, gpu_model, resource, requested_units, placed_pod_count, placing_seconds_p50, placing_seconds_p90, placing_seconds_p95,
--          placing_seconds_max, started_pod_count, starting_seconds_p50, starting_seconds_p90, starting_seconds_p95, starting_seconds_max,
--          waiting_pod_count, waiting_seconds_max, refused_pod_count, unknown_reasons
--   gpu_model          model of the GPUs that they were given; '' while they wait, or where unknown
--   resource           what they asked for
--   requested_units    units of it by each pod
--   placed_pod_count   pods that were given a node in the window
--   waiting_pod_count  pods that were last seen waiting for a node
--   refused_pod_count  those of all these for which the scheduler found no node at some time
select
    *,
    -- What no pod did took no time: a quantile of nothing.
    map_from_entries([
        { 'key': entry.name, 'value': 'no_pod' } for entry in [
            { 'name': 'placing_seconds_p50', 'value': placing_seconds_p50 },
            { 'name': 'placing_seconds_p90', 'value': placing_seconds_p90 },
            { 'name': 'placing_seconds_p95', 'value': placing_seconds_p95 },
            { 'name': 'placing_seconds_max', 'value': placing_seconds_max },
            { 'name': 'starting_seconds_p50', 'value': starting_seconds_p50 },
            { 'name': 'starting_seconds_p90', 'value': starting_seconds_p90 },
            { 'name': 'starting_seconds_p95', 'value': starting_seconds_p95 },
            { 'name': 'starting_seconds_max', 'value': starting_seconds_max },
            { 'name': 'waiting_seconds_max', 'value': waiting_seconds_max }
        ] if entry.value is null
    ]) as unknown_reasons
from period.wait
