-- How long pods waited for accelerators in the window before the report's; built as facts.earlier_ledger is.
--
-- grain:  cluster, gpu_model, resource, requested_units
-- reads:  facts.window_wait
-- params:
-- source: facts.window_wait of the window before
-- columns:
--   cluster              cluster name
--   gpu_model            model of the GPUs that they were given; '' while they wait, or where unknown
--   resource             what they asked for
--   requested_units      units of it by each pod
--   placed_pod_count     pods that were given a place in the window
--   placing_seconds_p95  s from created to placed, nineteen of twenty pods waited no longer
select
    cluster,
    gpu_model,
    resource,
    requested_units,
    placed_pod_count,
    placing_seconds_p95
from facts.window_wait
