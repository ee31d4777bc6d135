-- Growth of a GPU's energy counter over a gap or reset beyond its power.
--
-- Before a gap, a power reading is valid for at most three steps. Power samples that continue over the gap show all of its energy.
--
-- grain:  cluster, device_uuid, ended_at
-- reads:  day.energy_edge
-- columns:
--   ended_at            UTC, the first sample after the gap or reset
with bridge as (
    -- A sample that ends one gap may start the next.
    select
        columns('^(cluster|device_uuid|gap_count)$'),
        sum(reported_joules) as reported_joules,
        max(end_at) as begun_at
    from day.energy_edge
    where is_within_gap
    group by cluster, device_uuid, gap_count
)

select
    edge.* similar to '^(cluster|device_uuid|gap_joules)$',
    bridge.begun_at,
    edge.start_at as ended_at,
    date_trunc('hour', edge.start_at) as hour_start_at,
    greatest(0, edge.gap_joules - coalesce(bridge.reported_joules, 0)) as unexplained_joules
from day.energy_edge as edge
left join bridge
    on
        edge.cluster = bridge.cluster
        and edge.device_uuid = bridge.device_uuid
        and edge.gap_count = bridge.gap_count + 1
where edge.gap_joules is not null
