-- Error of the forecast one to seven days ahead, for each past day, from data up to the day of the forecast.
--
-- grain:  cluster, gpu_model, day, lead_day_count
-- reads:  period.demand_day, period.demand_expectation
-- columns:
--   lead_day_count      days between forecast and day
--   carried_gpu_hours   h on the day of the forecast: forecast without any change
--   expected_gpu_hours  h of the forecast
select
    past.* exclude (device_count, usable_gpu_hours, is_counted),
    expected.* similar to '^(lead_day_count|carried_gpu_hours|expected_gpu_hours)$',
    past.allocated_gpu_hours between expected.low_gpu_hours and expected.high_gpu_hours as is_within
from period.demand_day as past
inner join period.demand_expectation as expected
    using (cluster, gpu_model)
where
    past.is_counted
    and past.day = expected.origin_day + expected.lead_day_count::integer
    and expected.lead_day_count <= 7
