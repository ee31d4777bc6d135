-- End of a sample's interval: its time plus the seconds for which it is valid, to the millisecond.
--
-- parameters:
--   seen_at       time of the sample
--   held_seconds  s for which it is valid
-- source: sample and hold; lake.device_sample and lake.sample
create macro held_until(seen_at, held_seconds) as seen_at::timestamp + to_milliseconds(round(1000 * held_seconds)::bigint)
