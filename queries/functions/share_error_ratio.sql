-- Possible error of a holder's active energy from sharing, in both directions: 0 for a sole holder, 1 for equal parts without evidence.
--
-- 0.4 by activity or utilization: two programs that keep an H100 fully active draw 230 and 530 W above idle.
--
-- parameters:
--   method          sharing method, as in facts.power_hour; several are listed
--   equal_seconds   s of active time with energy in equal parts
--   active_seconds  s of active time
-- source: ML.ENERGY Benchmark 3.0, H100 SXM at batch sizes 1 and 128 (300 and 600 W, 70 W at idle): 380 W, 40 % more or less
create macro share_error_ratio(method, equal_seconds, active_seconds) as if(
    method = 'exclusive',
    0,
    0.4 + 0.6 * least(1, coalesce(equal_seconds / nullif(active_seconds, 0), 0))
)
