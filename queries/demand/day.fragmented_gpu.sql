-- Time in which a GPU is fragmented if it is unallocated: refused pods wait, and none fits its node. Intervals of one GPU do not overlap.
--
-- Only resources of whole GPUs count: a node does not show which MIG instance a pending pod could use.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  day.device_run, day.fragmentation
-- source: day.fragmentation
with device as (
    select distinct columns('^(cluster|device_uuid|node_name)$')
    from day.device_run
    where node_name != ''
),

reported as (
    select
        device.*,
        fragmentation.* exclude (cluster, node_name)
    from device
    inner join day.fragmentation
        using (cluster, node_name)
    where not starts_with(fragmentation.resource, 'nvidia.com/mig-') and not starts_with(fragmentation.resource, 'mig.')
),

caused as (
    select
        step.*,
        min(reported.cause) as cause
    from between_edges(reported, '^(cluster|device_uuid)$') as step
    inner join reported
        using (cluster, device_uuid)
    where
        step.start_at >= reported.start_at
        and step.start_at < reported.end_at
    group by all
)

select *
from merged_runs(caused, '^(cluster|device_uuid|cause)$')
