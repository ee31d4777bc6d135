-- The utilisation of holders themselves, reading by reading: of those that share a whole GPU or a MIG instance.
--
-- grain:  holder_number, seen_at
-- reads:  facts.held_series, lake.sample
-- params:
-- source: facts.held_series
-- columns:
--   holder_number  of facts.held_piece
--   seen_at        UTC, the sample
--   until_at       UTC, until when it is in force, outside it
--   util_ratio     share of time with a kernel of the holder running; of a pod's value each of its containers has an equal part
select
    series.holder_number,
    sample.seen_at::timestamp as seen_at,
    max(sample.seen_at::timestamp + to_milliseconds(round(1000 * sample.held_seconds)::bigint)) as until_at,
    max(sample.value / series.pod_owner_count) as util_ratio
from lake.sample
inner join facts.held_series as series
    on
        sample.cluster = series.cluster
        and sample.series_id = series.series_id
        and sample.seen_at < series.end_at
        and sample.seen_at::timestamp + to_milliseconds(round(1000 * sample.held_seconds)::bigint) > series.start_at
group by series.holder_number, sample.seen_at
