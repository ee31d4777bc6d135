-- Which GPUs there were in the window before the report's, and for how long; built as facts.earlier_ledger is.
--
-- grain:  cluster, node_name, device_uuid
-- reads:  facts.window_capacity
-- params:
-- source: facts.window_capacity of the window before
-- columns:
--   cluster             cluster name
--   node_name           node of those that no exporter tells of; '' else, for a GPU may move
--   device_uuid         UUID of the physical GPU; '' of those that no exporter tells of
--   gpu_model           model, '' where unknown
--   capacity_gpu_hours  h of whole GPUs
select
    cluster,
    if(device_uuid = '', node_name, '') as node_name,
    device_uuid,
    max(gpu_model) as gpu_model,
    sum(capacity_seconds) / 3600 as capacity_gpu_hours
from facts.window_capacity
group by all
