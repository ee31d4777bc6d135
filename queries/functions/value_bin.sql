-- Number of the bin of a value: of the nearest multiple of the width; only 0 and less is in bin 0, and all beyond 10,000 is in that bin.
--
-- parameters:
--   value  a signal's value, in its unit
--   width  bin_width of the signal
-- source: as bin_width
create macro value_bin(value, width) as if(value <= 0, 0, least(10000, greatest(1, round(value / width))))::integer
