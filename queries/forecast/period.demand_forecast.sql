-- Forecast per GPU model and day: the last week's level with its weekdays and daily change (period.demand_expectation).
--
-- It starts after the last day with data. With n counted days, it ends n / 2 days after the last counted day, at most 90 days. There is no forecast
-- where fewer than 28 days count, nor where the last day's value was as close, unless both are exact.
--
-- grain:  cluster, gpu_model, day
-- reads:  period.demand_backtest, period.demand_day, period.demand_expectation
with extent as (
    select
        columns('^(cluster|gpu_model)$'),
        max(day) filter (where is_counted) as last_day,
        max(max(day)) over (partition by cluster) as latest_day,
        count(*) filter (where is_counted) as day_count
    from period.demand_day
    group by cluster, gpu_model
),

closer as (
    select columns('^(cluster|gpu_model)$')
    from period.demand_backtest
    group by cluster, gpu_model
    having sum(abs(allocated_gpu_hours - expected_gpu_hours)) < greatest(sum(abs(allocated_gpu_hours - carried_gpu_hours)), 0.001)
)

select
    expected.* similar to '^(cluster|gpu_model)$',
    (expected.origin_day + expected.lead_day_count::integer)::date as day,
    columns('^(low|expected|high)_gpu_hours$')
from period.demand_expectation as expected
inner join extent
    using (cluster, gpu_model)
semi join closer
    using (cluster, gpu_model)
where
    extent.day_count >= 28 and expected.origin_day = extent.last_day
    and expected.lead_day_count <= extent.day_count // 2 and day > extent.latest_day
