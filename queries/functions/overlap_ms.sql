-- Milliseconds that two half-open intervals have in common; 0 if they do not overlap. Whole milliseconds add up exactly.
--
-- parameters:
--   start_at        start of the first interval
--   end_at          end of the first interval
--   other_start_at  start of the second interval
--   other_end_at    end of the second interval
-- source: intervals are [start, end) everywhere
create macro overlap_ms(start_at, end_at, other_start_at, other_end_at) as greatest(
    0, epoch_ms(least(end_at, other_end_at)) - epoch_ms(greatest(start_at, other_start_at))
)
