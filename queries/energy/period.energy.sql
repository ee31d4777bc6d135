-- Energy of each cluster's GPUs in the window.
--
-- grain:  cluster
-- reads:  facts.device_power_hour
-- params: since_at, until_at
-- source: facts.device_power_hour
-- columns:
--   cluster        cluster name
--   energy_joules  J, as far as it is known
select
    cluster,
    sum(measured_joules) as energy_joules
from facts.device_power_hour
where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
group by cluster
