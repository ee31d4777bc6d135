-- Part of a holder's active energy by which sharing may be off, either way: none of it alone, all of it in equal parts, which nothing shows.
--
-- By activity or utilization 0.4: two programs that keep an H100 fully active draw 230 and 530 W above idle.
--
-- parameters:
--   method          how the energy was shared, as in facts.power_hour; several are listed
--   equal_seconds   s of active time in which it was shared in equal parts
--   active_seconds  s of active time
-- source: ML.ENERGY Benchmark 3.0, H100 SXM at batch sizes 1 and 128 (300 and 600 W, 70 W at idle): 380 W, 40 % more or less
create macro share_error_ratio(method, equal_seconds, active_seconds) as if(
    method = 'exclusive',
    0,
    0.4 + 0.6 * least(1, coalesce(equal_seconds / nullif(active_seconds, 0), 0))
)
