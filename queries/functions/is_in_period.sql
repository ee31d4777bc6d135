-- Whether an hour counts in a period. An hour partly in the period counts fully, because facts are hourly.
--
-- parameters:
--   hour_start_at  start of the hour
--   since_at       start of the period
--   until_at       end of the period
-- source: periods are [start, end)
create macro is_in_period(hour_start_at, since_at, until_at) as (
    hour_start_at < until_at and hour_start_at + interval 1 hour > since_at
)
