-- Allocated GPUs of each model day by day, and the demand forecast with its 80 % interval.
--
-- Demand is allocated GPUs, without requests of waiting pods. Left-out days have too little data.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_day, period.demand_forecast, period.demand_runway
-- columns: cluster, gpu_model, day, kind, allocated_gpu_hours, usable_gpu_hours, low_gpu_hours, expected_gpu_hours, high_gpu_hours, unknown_reasons
--   kind                 observed, left out or forecast
--   allocated_gpu_hours  h allocated on an observed day
--   usable_gpu_hours     h usable on an observed day
--   expected_gpu_hours   h expected
select
    columns('^(cluster|gpu_model|day)$'),
    if(is_counted, 'observed', 'left out') as kind,
    allocated_gpu_hours,
    usable_gpu_hours,
    null::double as low_gpu_hours,
    null::double as expected_gpu_hours,
    null::double as high_gpu_hours,
    unknown_reasons([(name, 'is_past') for name in ['low_gpu_hours', 'expected_gpu_hours', 'high_gpu_hours']] || [
        ('allocated_gpu_hours', if(allocated_gpu_hours is null, if(device_count > 0, 'no_pod_labels', 'not_collected'), null))
    ]) as unknown_reasons
from period.demand_day
union all by name
select
    *,
    'forecast' as kind,
    map { 'allocated_gpu_hours': 'is_future', 'usable_gpu_hours': 'is_future' } as unknown_reasons
from period.demand_forecast
semi join period.demand_runway
    using (cluster, gpu_model)
