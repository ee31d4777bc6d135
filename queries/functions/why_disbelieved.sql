-- Reason why a figure of an amount is null: of why_unknown, or that the amount was measured and is not believed (believed).
--
-- parameters:
--   amount          what was measured, by believed; null where it is implausible or was never known
--   seen_seconds    s in which it was known
--   sample_count    samples of a counter; without growth between them a single one
--   elsewhere       as of why_unknown
--   left_out        as of why_unknown
--   needed_seconds  as of why_unknown
-- source: queries/functions/why_unknown.sql
create macro why_disbelieved(amount, seen_seconds, sample_count, elsewhere, left_out, needed_seconds) as if(
    amount is null and seen_seconds is not null,
    'implausible',
    why_unknown(seen_seconds, elsewhere, coalesce(left_out, if(sample_count > 0, 'single_sample', null)), needed_seconds)
)
