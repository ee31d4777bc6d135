-- Sums of holders' own measurements, by allocation of the device and hour.
--
-- grain:  line_number, start_at, hour_start_at
-- reads:  day.pod_series, lake.sample
-- columns:
--   line_number    number of the holder and signal
--   start_at       UTC, start of the allocation
--   seen_seconds   s with a value
--   value_seconds  value x s
--   value_max      maximum value
with sampled as (
    select
        line.line_number,
        line.is_alone,
        line.start_at,
        sample.value,
        greatest(epoch_ms(sample.seen_at), epoch_ms(line.start_at)) as start_ms,
        least(epoch_ms(held_until(sample.seen_at, sample.held_seconds)), epoch_ms(line.end_at)) as end_ms
    from lake.sample
    inner join day.pod_series as line
        using (cluster, series_id)
    where
        epoch_ms(sample.seen_at) < epoch_ms(line.end_at)
        and epoch_ms(held_until(sample.seen_at, sample.held_seconds)) > epoch_ms(line.start_at)
),

-- Samples of one series do not overlap. Each copy lasts until the next; of copies with one time, the last and largest counts.
step as (
    select
        * exclude (is_alone),
        end_ms - start_ms as held_ms
    from sampled
    where is_alone
    union all by name
    select
        * exclude (is_alone),
        least(end_ms, lead(start_ms, 1, end_ms) over (partition by line_number order by start_ms, value, end_ms)) - start_ms as held_ms
    from sampled
    where not is_alone
)

-- Sums of doubles are equal only in the same order.
select
    line_number,
    start_at,
    date_trunc('hour', make_timestamp_ms(start_ms)) as hour_start_at,
    sum(held_ms) / 1000 as seen_seconds,
    sum(value * held_ms order by start_ms) / 1000 as value_seconds,
    max(value) as value_max
from step
group by all
order by line_number, start_at, hour_start_at
