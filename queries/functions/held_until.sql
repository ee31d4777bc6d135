-- End of a sample's interval: the time of the sample plus the seconds for which it is in force, to the millisecond.
--
-- parameters:
--   seen_at       time of the sample
--   held_seconds  s for which it is in force
-- source: sample and hold; lake.device_sample and lake.sample
create macro held_until(seen_at, held_seconds) as seen_at::timestamp + to_milliseconds(round(1000 * held_seconds)::bigint)
