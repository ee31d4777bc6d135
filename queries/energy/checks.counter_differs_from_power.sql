-- GPU hours over which energy counter and power differ by more than 1 %.
--
-- One of the two is wrong, or power changed between two samples: it is taken to hold until the next, so where scrapes failed when work began or ended
-- the counter knows what power does not. Energy is the counter's then.
--
-- severity: warn
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  facts.device_power_hour
-- source: facts.device_power_hour
-- columns: cluster, device_uuid, hour_start_at, counter_joules, integral_joules
--   counter_joules  J, growth of the energy counter
select columns('^(cluster|device_uuid|hour_start_at|counter_joules|integral_joules)$')
from facts.device_power_hour
where abs(counter_joules - integral_joules) > 0.01 * greatest(counter_joules, integral_joules)
