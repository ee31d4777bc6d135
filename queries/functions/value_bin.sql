-- Bin number of a value: the nearest multiple of the width. Bin 0 has only values of 0 or less; bin 10,000 also has all larger values.
--
-- parameters:
--   value  a signal's value, in its unit
--   width  bin_width of the signal
-- source: as bin_width
create macro value_bin(value, width) as if(value <= 0, 0, least(10000, greatest(1, round(value / width))))::integer
