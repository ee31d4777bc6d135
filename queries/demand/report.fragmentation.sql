-- Free units of each accelerator resource, and the largest request that still fitted, every five minutes.
--
-- A request is placed on one node. From snapshots, else from kube-state-metrics. Never add resources: a device may be offered
-- under several names.
--
-- grain:  cluster, resource
-- reads:  facts.free_capacity
-- params: since_at, until_at
-- source: facts.free_capacity
-- columns:
--   cluster                    cluster name
--   resource                   extended resource, or <class>.deviceclass.resource.k8s.io/devices
--   source                     snapshot or kube-state-metrics
--   look_count                 looks
--   schedulable_units_avg      units of nodes that take pods
--   free_units_avg             what was left of them on all nodes together
--   free_units_min             the same, the least
--   largest_request_units_avg  units that one node had left, the most of any node
--   largest_request_units_min  the same, the least
--   largest_request_units_max  the same, the most
--   fragmentation_ratio        share of what was left that lay on other nodes than the one with the most; null where nothing was left
--   fits_1_ratio               share of looks at which a pod of 1 unit would have fitted
--   fits_2_ratio               the same, of 2 units
--   fits_4_ratio               the same, of 4 units
--   fits_8_ratio               the same, of 8 units
--   fitting_8_pod_count_avg    pods of 8 units that would have fitted at once
with look as (
    select
        *,
        dense_rank() over (partition by cluster, resource order by source desc) as source_number
    from facts.free_capacity
    where looked_at >= $since_at and looked_at < $until_at
)

select
    cluster,
    resource,
    any_value(source) as source,
    count(*) as look_count,
    avg(schedulable_units) as schedulable_units_avg,
    avg(free_units) as free_units_avg,
    min(free_units) as free_units_min,
    avg(largest_request_units) as largest_request_units_avg,
    min(largest_request_units) as largest_request_units_min,
    max(largest_request_units) as largest_request_units_max,
    1 - sum(largest_request_units) / nullif(sum(free_units), 0) as fragmentation_ratio,
    avg((largest_request_units >= 1)::bigint) as fits_1_ratio,
    avg((largest_request_units >= 2)::bigint) as fits_2_ratio,
    avg((largest_request_units >= 4)::bigint) as fits_4_ratio,
    avg((largest_request_units >= 8)::bigint) as fits_8_ratio,
    avg(fitting_8_pod_count) as fitting_8_pod_count_avg
from look
where source_number = 1
group by cluster, resource
