-- Time of an instant on the clocks of a time zone.
--
-- parameters:
--   told_at  UTC
--   zone     name of the time zone
-- source: IANA time zone database, as DuckDB has it
create macro local_time(told_at, zone) as if(zone = 'UTC', told_at::timestamp, timezone(zone, told_at::timestamp at time zone 'UTC'))
