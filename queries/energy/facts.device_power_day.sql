-- Energy of each GPU per UTC day: facts.device_power_hour added over hours.
--
-- grain:  cluster, device_uuid, day
-- reads:  facts.device_power_hour
-- params: since_at, until_at
-- source: facts.device_power_hour
-- columns:
--   cluster               cluster name
--   device_uuid           UUID of the physical GPU
--   day                   UTC day
--   measured_joules       J, growth of the energy counter, gaps included; power over time where it is silent
--   counter_joules        J, growth of the counter where power is known too
--   integral_joules       J, power over the same time
--   idle_joules           J of the idle baseline, held or not; null where the baseline is unknown
--   attributed_joules     J to holders: above idle, active or merely held
--   unattributed_joules   J to nobody
--   gap_joules            J of these over gaps and resets of the counter, beyond what power tells
--   closing_error_joules  J, measured less the other three, to the microjoule: sums of doubles differ by less
--   held_idle_joules      J of the idle baseline while somebody held it
--   reserved_joules       J of what nobody used while a claim had it and no container; null where no claims were looked at
--   measured_seconds      s whose energy is known
--   held_seconds          s of them in which somebody held it
--   measured_known_count  hours whose energy is known
--   idle_known_count      hours whose idle_joules are known
with hour as (
    select *
    from facts.device_power_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    order by cluster, device_uuid, hour_start_at
)

select
    cluster,
    device_uuid,
    hour_start_at::date as day,
    sum(columns('_(seconds|joules)$')),
    count(measured_seconds) as measured_known_count,
    count(idle_joules) as idle_known_count
from hour
group by all
