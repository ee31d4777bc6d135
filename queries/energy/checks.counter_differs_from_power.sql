-- GPU hours over which energy counter and power differ by more than 1 % and what power that changed between two samples explains.
--
-- One of the two is wrong, or work came and went between two samples.
--
-- severity: warn
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  facts.device_power_hour
-- columns: cluster, device_uuid, hour_start_at, counter_joules, integral_joules
--   counter_joules  J, growth of the energy counter
select columns('^(cluster|device_uuid|hour_start_at|counter_joules|integral_joules)$')
from facts.device_power_hour
where abs(counter_joules - integral_joules) > 0.01 * greatest(counter_joules, integral_joules) + coalesce(step_joules, 0)
