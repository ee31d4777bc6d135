-- Local time of an instant in a time zone.
--
-- parameters:
--   reported_at  UTC
--   zone         name of the time zone
-- source: IANA time zone database, as DuckDB has it
create macro local_time(reported_at, zone) as if(zone = 'UTC', reported_at::timestamp, timezone(zone, reported_at::timestamp at time zone 'UTC'))
