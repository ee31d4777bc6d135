-- Energy of each GPU and where it went, added over the window.
--
-- grain:  cluster, device_uuid
-- reads:  facts.device_power_day
-- params:
-- source: facts.device_power_hour
-- columns: cluster, device_uuid, measured_joules, counter_joules, integral_joules, idle_joules, attributed_joules, unattributed_joules,
--          closing_error_joules
--   measured_joules  J, energy
--   idle_joules      J of the idle baseline, held or not; null where the baseline is unknown at some time
select
    cluster,
    device_uuid,
    sum(measured_joules) as measured_joules,
    sum(counter_joules) as counter_joules,
    sum(integral_joules) as integral_joules,
    if(sum(idle_known_count) = sum(measured_known_count), sum(idle_joules), null) as idle_joules,
    sum(attributed_joules) as attributed_joules,
    sum(unattributed_joules) as unattributed_joules,
    sum(closing_error_joules) as closing_error_joules
from facts.device_power_day
group by cluster, device_uuid
