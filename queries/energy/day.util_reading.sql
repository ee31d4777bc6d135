-- Activity readings of each holder of a shared GPU or MIG instance: utilization, or Kepler's watts.
--
-- grain:  holder_number, step_at
-- reads:  day.sharer_series, lake.sample
-- columns:
--   step_at   UTC, time of the sample; start of the holder's interval for a previous sample that is still valid
--   until_at  UTC, end of validity, exclusive; at most the end of the holder's interval
--   weight    share of time with a running kernel of the holder, or W; a pod's value in equal parts for its containers
with line as (
    select
        *,
        count(*) over (partition by holder_number) = 1 as is_alone
    from day.sharer_series
),

reading as (
    select
        line.*,
        greatest(sample.seen_at::timestamp, line.start_at) as step_at,
        least(held_until(sample.seen_at, sample.held_seconds), line.end_at) as until_at,
        sample.value / line.pod_owner_count as weight
    from lake.sample
    inner join line
        using (cluster, series_id)
    where sample.seen_at < line.end_at and held_until(sample.seen_at, sample.held_seconds) > line.start_at
)

select
    columns('^(holder_number|step_at|until_at)$'),
    weight
from reading
where is_alone
union all by name
-- Copies with the same time count once.
select
    columns('^(holder_number|step_at)$'),
    max(columns('^(until_at|weight)$'))
from reading
where not is_alone
group by holder_number, step_at
