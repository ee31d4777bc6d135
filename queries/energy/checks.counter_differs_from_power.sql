-- GPU hours in which energy counter and power differ by more than 1 % plus the effect of power changes between samples.
--
-- One of the two is wrong, or work started and ended between two samples.
--
-- severity: warn
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  facts.device_power_hour
-- columns: cluster, device_uuid, hour_start_at, counter_joules, integral_joules
--   counter_joules  J, growth of the energy counter
select columns('^(cluster|device_uuid|hour_start_at|counter_joules|integral_joules)$')
from facts.device_power_hour
where abs(counter_joules - integral_joules) > 0.01 * greatest(counter_joules, integral_joules) + coalesce(step_joules, 0)
