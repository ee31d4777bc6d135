-- Capacity runway of each GPU model from at least four weeks of history, with the error of past forecasts.
--
-- The forecast continues the last week by weekday and daily change (period.demand_expectation). There is none where the last day's value was as
-- close.
--
-- grain:  cluster, gpu_model
-- reads:  period.demand_runway
-- columns: cluster, gpu_model, sentence, day_count, left_out_count, daily_allocated_gpu_hours, daily_usable_gpu_hours, daily_overdue_gpu_hours, weekly_change_gpu_hours,
--          runway_day_count, early_runway_day_count, short_gpu_hours, horizon_day_count, backtest_day_count, backtest_error_ratio,
--          naive_error_ratio, backtest_within_ratio, unknown_reasons
--   sentence              summary in words
with judged as (
    select
        *,
        case when horizon_day_count is null then if(backtest_error_ratio >= naive_error_ratio, 'no_better', 'too_few_days') end as no_forecast
    from period.demand_runway
)

select
    cluster,
    gpu_model,
    case
        when day_count < 28 then format('no forecast: {} of the required 28 days have data', day_count)
        when daily_usable_gpu_hours = 0 then 'all GPUs are unavailable'
        when daily_allocated_gpu_hours >= 0.99 * daily_usable_gpu_hours then 'all GPUs are allocated already'
        when daily_allocated_gpu_hours + daily_overdue_gpu_hours >= 0.99 * daily_usable_gpu_hours
            then format('at capacity already: overdue pods wait for {:,.0f} GPU-hours a day', daily_overdue_gpu_hours)
        when no_forecast = 'no_better'
            then format(
                'no forecast: past error {:.1f} %, error of repeating the last day {:.1f} %',
                100 * backtest_error_ratio, 100 * naive_error_ratio
            )
        when horizon_day_count is null then 'no forecast: the last day has too little data, or no week is complete'
        when runway_day_count is not null
            then format('all GPUs are expected to be allocated in {}', counted(runway_day_count, 'day'))
        when early_runway_day_count is not null
            then format(
                'not all GPUs are expected to be allocated within {} days; at the high forecast in {}',
                horizon_day_count, counted(early_runway_day_count, 'day')
            )
        else format('not all GPUs are expected to be allocated within {} days', horizon_day_count)
    end || if(is_overdue_unknown and horizon_day_count > 0, '; GPUs of overdue pods are unknown', '') as sentence,
    * exclude (cluster, gpu_model, no_forecast, is_overdue_unknown),
    unknown_reasons([
        ('daily_allocated_gpu_hours', if(daily_allocated_gpu_hours is null, 'too_few_days', null)),
        ('daily_usable_gpu_hours', if(daily_usable_gpu_hours is null, 'too_few_days', null)),
        ('daily_overdue_gpu_hours', if(daily_overdue_gpu_hours is null, if(is_overdue_unknown, 'not_collected', 'no_pod'), null)),
        ('weekly_change_gpu_hours', if(weekly_change_gpu_hours is null, 'too_few_days', null)),
        ('runway_day_count', if(runway_day_count is null, coalesce(no_forecast, 'beyond_horizon'), null)),
        ('early_runway_day_count', if(early_runway_day_count is null, coalesce(no_forecast, 'beyond_horizon'), null)),
        ('horizon_day_count', no_forecast),
        ('short_gpu_hours', no_forecast),
        ('backtest_error_ratio', if(backtest_error_ratio is null, if(backtest_day_count = 0, 'too_few_days', 'no_time'), null)),
        ('naive_error_ratio', if(naive_error_ratio is null, if(backtest_day_count = 0, 'too_few_days', 'no_time'), null)),
        ('backtest_within_ratio', if(backtest_within_ratio is null, 'too_few_days', null))
    ]) as unknown_reasons
from judged
