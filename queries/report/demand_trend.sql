-- What was held of each GPU model day by day, and what is expected to be held, with a band that eight of ten days should fall into.
--
-- Held, not asked for: pods that wait are not in it. Observed days that do not count were seen too little.
--
-- grain:  cluster, gpu_model, day
-- reads:  facts.demand_day, facts.demand_forecast
-- params:
-- source: facts.demand_day, facts.demand_forecast
-- columns:
--   cluster             cluster name
--   gpu_model           model; '' where unknown
--   day                 UTC day
--   kind                observed, left out or forecast
--   held_gpu_hours      h held; of an observed day
--   usable_gpu_hours    h usable; of an observed day
--   low_gpu_hours       h, one day in ten is expected to fall below
--   expected_gpu_hours  h expected
--   high_gpu_hours      h, one day in ten is expected to rise above
--   unknown_reasons     figure name → why it is null (docs/figures.md); one entry for each null figure
select
    cluster,
    gpu_model,
    day,
    if(is_counted, 'observed', 'left out') as kind,
    held_gpu_hours,
    usable_gpu_hours,
    null::double as low_gpu_hours,
    null::double as expected_gpu_hours,
    null::double as high_gpu_hours,
    map { 'low_gpu_hours': 'is_past', 'expected_gpu_hours': 'is_past', 'high_gpu_hours': 'is_past' } as unknown_reasons
from facts.demand_day
union all by name
select
    cluster,
    gpu_model,
    day,
    'forecast' as kind,
    null::double as held_gpu_hours,
    null::double as usable_gpu_hours,
    low_gpu_hours,
    expected_gpu_hours,
    high_gpu_hours,
    map { 'held_gpu_hours': 'is_future', 'usable_gpu_hours': 'is_future' } as unknown_reasons
from facts.demand_forecast
