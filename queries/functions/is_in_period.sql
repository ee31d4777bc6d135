-- Whether an hour counts in a period: an hour that the period cuts counts fully, as facts are hourly.
--
-- parameters:
--   hour_start_at  start of the hour
--   since_at       start of the period
--   until_at       its end
-- source: periods are [start, end)
create macro is_in_period(hour_start_at, since_at, until_at) as (
    hour_start_at < until_at and hour_start_at + interval 1 hour > since_at
)
