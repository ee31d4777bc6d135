-- Intervals of device hours that are cut at changes of holders, partitions, reservation, availability or fragmentation.
--
-- An hour without a change has no row. The cuts are the board's: a change on one MIG instance also cuts the intervals of the board and of its
-- siblings. Nothing is lost, because sums add up.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  day.device_outage, day.device_run, day.fragmented_gpu, day.reservation, facts.ownership
with change as (
    select columns('^(cluster|device_uuid|start_at|end_at)$')
    from facts.ownership
    union all by name
    select columns('^(cluster|device_uuid|start_at|end_at)$')
    from day.device_run
    where gpu_instance_id != ''
    union all by name
    select columns('^(cluster|device_uuid|start_at|end_at)$')
    from day.device_outage
    union all by name
    select columns('^(cluster|device_uuid|start_at|end_at)$')
    from day.reservation
    union all by name
    select columns('^(cluster|device_uuid|start_at|end_at)$')
    from day.fragmented_gpu
),

edge as (
    select
        cluster,
        device_uuid,
        unnest([start_at, end_at]) as changed_at
    from change
),

cut as (
    select distinct
        columns('^(cluster|device_uuid)$'),
        date_trunc('hour', changed_at) as hour_start_at,
        unnest([date_trunc('hour', changed_at), changed_at]) as start_at
    from edge
    where changed_at != date_trunc('hour', changed_at)
)

select
    *,
    lead(start_at, 1, hour_start_at + interval 1 hour) over (
        partition by cluster, device_uuid, hour_start_at
        order by start_at
    ) as end_at
from cut
