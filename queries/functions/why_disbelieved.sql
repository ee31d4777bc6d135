-- Reason why a figure of an amount is null: a reason of why_unknown, or a measured amount that is not possible (believed).
--
-- parameters:
--   amount          measured amount from believed; null where implausible or never known
--   seen_seconds    s in which the amount was known
--   sample_count    samples of the counter; a single one has no growth
--   elsewhere       as of why_unknown
--   left_out        as of why_unknown
--   needed_seconds  as of why_unknown
-- source: queries/functions/why_unknown.sql
create macro why_disbelieved(amount, seen_seconds, sample_count, elsewhere, left_out, needed_seconds) as if(
    amount is null and seen_seconds is not null,
    'implausible',
    why_unknown(seen_seconds, elsewhere, coalesce(left_out, if(sample_count > 0, 'single_sample', null)), needed_seconds)
)
