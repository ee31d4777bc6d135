-- Recomputed days: GPU-hours of each day before and after its facts were computed again from other samples.
--
-- Previous reports show other figures for these days.
--
-- grain:  cluster, day
-- reads:  facts.ledger_hour
-- params: restated_days, since_at, until_at
-- source: footers of facts; facts.ledger_hour
-- columns: cluster, day, previous_seen_gpu_hours, seen_gpu_hours, previous_allocated_gpu_hours, allocated_gpu_hours
--   previous_allocated_gpu_hours  h allocated on the day, by its first facts
--   allocated_gpu_hours           h allocated on the day, by its present facts
with authoritative as (
    select unnest(from_json(
        $restated_days::json,
        '[{"cluster": "VARCHAR", "day": "DATE", "previous_seen_gpu_hours": "DOUBLE", "previous_allocated_gpu_hours": "DOUBLE"}]'
    ), recursive := true)
)

select
    authoritative.* similar to '^(cluster|day|previous_seen_gpu_hours)$',
    coalesce(sum(ledger.gpu_seconds) filter (where ledger.activity != 'unseen'), 0) / 3600 as seen_gpu_hours,
    authoritative.previous_allocated_gpu_hours,
    coalesce(sum(ledger.gpu_seconds) filter (
        where ledger.activity != 'unseen' and ledger.pod != '' and not ledger.is_reserved
    ), 0) / 3600 as allocated_gpu_hours
from authoritative
left join facts.ledger_hour as ledger
    on
        authoritative.cluster = ledger.cluster
        and authoritative.day = ledger.hour_start_at::date
where authoritative.day + interval 1 day > $since_at and authoritative.day < $until_at
group by all
