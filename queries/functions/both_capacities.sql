-- Capacity of both periods, and whether a node has an exporter in one of them only: then GPUs of the other period have no UUID.
--
-- parameters:
--   before  previous.capacity
--   now     period.capacity
-- source: period.capacity
create macro both_capacities(before, now) as table
    select
        *,
        bool_or(device_uuid = '' and period = 'now') over node != bool_or(device_uuid = '' and period = 'before') over node as is_of_node
    from both_periods(before, now)
    window node as (partition by cluster, node_name)
