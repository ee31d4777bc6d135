-- GPU hours whose idle, attributed and unattributed energy do not add up to the measured energy, or are negative.
--
-- severity: fail
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  facts.device_power_hour
-- columns: cluster, device_uuid, hour_start_at, measured_joules, idle_joules, attributed_joules, unattributed_joules, closing_error_joules
--   measured_joules  J, energy measured
--   idle_joules      J of the idle baseline
select columns('^(cluster|device_uuid|hour_start_at|measured_joules|idle_joules|attributed_joules|unattributed_joules|closing_error_joules)$')
from facts.device_power_hour
where
    abs(closing_error_joules) > 1e-9 * measured_joules + 1e-6
    or idle_joules < 0
    or attributed_joules < 0
    or unattributed_joules < 0
