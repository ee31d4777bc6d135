-- Findings: GPU models forecast to be fully allocated within the lead time.
--
-- grain:  code, cluster, detail
-- reads:  period.demand_runway
-- params: lead_time_days, until_at
-- source: period.demand_runway
-- columns:
--   detail  the model
select
    'GR701' as code,
    gpu_model as detail,
    cluster,
    gpu_model,
    short_gpu_hours as gpu_hours,
    -- The forecast has to be better than last week's value, and close, to be relied upon.
    case
        when backtest_error_ratio is null or backtest_error_ratio > 0.3 then 'low'
        when backtest_error_ratio <= 0.1 and backtest_error_ratio <= naive_error_ratio then 'high'
        else 'medium'
    end as confidence,
    format(
        'demand is forecast to grow from {:,.0f} to the capacity of {:,.0f} GPU-hours a day in {} days; past forecasts were off by {:.0f} %',
        daily_allocated_gpu_hours, daily_usable_gpu_hours, runway_day_count, 100 * coalesce(backtest_error_ratio, 1)
    ) as evidence,
    $until_at::timestamp as first_seen_at
from period.demand_runway
where
    runway_day_count <= $lead_time_days
    -- What is held throughout already has no runway to speak of: waits show what that costs.
    and daily_allocated_gpu_hours < 0.99 * daily_usable_gpu_hours
