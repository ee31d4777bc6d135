-- Allocatable units of each accelerator resource on each node, from each source.
--
-- grain:  cluster, source, node_name, resource, state, start_at
-- reads:  day.kube_allocatable, day.snapshot_allocatable
-- source: day.snapshot_allocatable; day.kube_allocatable
-- columns:
--   state  as in day.snapshot_allocatable
select
    *,
    'snapshot' as source
from day.snapshot_allocatable
union all by name
select
    *,
    'kube-state-metrics' as source
from day.kube_allocatable
