-- Outages of each GPU and of its node, as intervals that do not overlap.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  day.device_run, day.outage
-- source: day.outage; nodes by the labels of the GPU's series
-- columns:
--   cause  not_ready, cordoned, unhealthy or tainted; several are listed
with device as (
    select distinct columns('^(cluster|device_uuid|node_name)$')
    from day.device_run
),

reported as (
    select
        device.*,
        outage.* exclude (cluster, node_name, device_uuid)
    from device
    inner join day.outage
        using (cluster, node_name)
    where outage.device_uuid = ''
    union all by name
    select
        device.*,
        outage.* exclude (cluster, node_name, device_uuid)
    from device
    inner join day.outage
        using (cluster, device_uuid)
)

select
    columns('^(cluster|device_uuid)$'),
    min(start_at) as start_at,
    max(end_at) as end_at,
    string_agg(distinct cause, ', ' order by cause) as cause
from numbered_runs(reported, (cluster, device_uuid))
group by cluster, device_uuid, run_number
