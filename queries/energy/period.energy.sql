-- Energy of each cluster's GPUs in the window.
--
-- grain:  cluster
-- reads:  facts.device_power_day
-- source: facts.device_power_hour
select
    cluster,
    sum(measured_joules) as energy_joules
from facts.device_power_day
group by cluster
