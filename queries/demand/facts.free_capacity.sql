-- Free units of each accelerator resource on all nodes and on the best node, every five minutes.
--
-- The largest request that still fits is what one node has left. Koordinator's shares of devices are left out: which fit is told device by
-- device (facts.device_capacity).
--
-- revision: 2
-- grain:  cluster, resource, looked_at, source
-- reads:  day.node_capacity
-- params:
-- source: day.node_capacity
-- columns: cluster, resource, looked_at, source, schedulable_units, free_units, largest_request_units, free_node_count, fitting_2_pod_count,
--          fitting_4_pod_count, fitting_8_pod_count
--   looked_at              UTC, a full five minutes
--   schedulable_units      units of nodes that take pods
--   free_units             what is left of them
--   largest_request_units  what one node has left, the most of any
--   free_node_count        nodes with anything left
--   fitting_2_pod_count    pods of 2 units that would fit, node by node
--   fitting_4_pod_count    pods of 4 units that would fit
--   fitting_8_pod_count    pods of 8 units that would fit
with stepped as (
    select
        *,
        unnest(generate_series(
            time_bucket(interval 5 minutes, start_at + interval 5 minutes - interval 1 millisecond),
            end_at - interval 1 millisecond,
            interval 5 minutes
        )) as looked_at
    from day.node_capacity
    where not starts_with(resource, 'koordinator.sh/') and resource != 'gpu'
)

select
    cluster,
    resource,
    looked_at,
    source,
    sum(schedulable_units) as schedulable_units,
    sum(free_units) as free_units,
    max(free_units) as largest_request_units,
    count(*) filter (where free_units > 0) as free_node_count,
    sum(floor(free_units / 2))::bigint as fitting_2_pod_count,
    sum(floor(free_units / 4))::bigint as fitting_4_pod_count,
    sum(floor(free_units / 8))::bigint as fitting_8_pod_count
from stepped
group by cluster, resource, looked_at, source
