-- Longest believable violation time in an observed time: counters are read some ms beside their timestamps, and refreshed up to half a minute late.
--
-- parameters:
--   seen_seconds  s in which the counter was observed
-- source: dcgm-exporter's interval of collection, 30 s
create macro violation_limit(seen_seconds) as 1.001 * seen_seconds + 30
