-- Energy of each GPU per UTC day: facts.device_power_hour added over hours.
--
-- revision: 7
-- grain:  cluster, device_uuid, day
-- reads:  facts.device_power_hour
-- params: since_at, until_at
-- columns: those of facts.device_power_hour without hour_start_at, layout, idle_watts, idle_source; day,
--          measured_known_count, idle_known_count
with hour as (
    select *
    from facts.device_power_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    order by cluster, device_uuid, hour_start_at
)

select
    columns('^(cluster|device_uuid)$'),
    hour_start_at::date as day,
    sum(columns('_(seconds|joules)$')),
    count(measured_seconds) as measured_known_count,
    count(idle_joules) as idle_known_count
from hour
group by all
