-- Findings: namespaces whose pods wait long for accelerators, and GPU models forecast to be fully allocated within the lead time.
--
-- A wait is judged where three or more pods were placed in the window, or still wait at its end. Waiting pods count with their wait so far.
--
-- grain:  code, cluster, namespace, detail
-- reads:  period.demand_runway, period.pod_wait
-- params: lead_time_days, since_at, until_at, wait_hours_max
-- columns:
--   detail  requested resource, or the model
with summed as (
    select
        columns('^(cluster|namespace|resource)$'),
        string_agg(distinct gpu_model, ', ' order by gpu_model) filter (where gpu_model != '') as gpu_model,
        count(*) as pod_count,
        count(*) filter (where is_waiting and pending_until_at >= $until_at) as waiting_count,
        count(*) filter (where is_waiting) - waiting_count as gone_count,
        quantile_cont(coalesce(waiting_seconds, placing_seconds) / 3600, 0.5) as wait_hours_p50,
        quantile_cont(coalesce(waiting_seconds, placing_seconds) / 3600, 0.95) as wait_hours_p95,
        sum(pending_gpu_hours) as pending_gpu_hours,
        date_trunc('hour', min(greatest(created_at, $since_at::timestamp))) as first_seen_at
    from period.pod_wait
    where is_placed or is_waiting
    group by cluster, namespace, resource
)

select
    'GR510' as code,
    resource as detail,
    columns('^(cluster|namespace)$'),
    coalesce(gpu_model, '') as gpu_model,
    pending_gpu_hours as gpu_hours,
    'high' as confidence,
    format(
        '{} waited: median {:,.1f} h, p95 {:,.1f} h; {:,} still pending at the end',
        counted(pod_count, 'pod'), wait_hours_p50, wait_hours_p95, waiting_count
    ) || if(gone_count > 0, format(', {:,} deleted or not listed any more', gone_count), '') as evidence,
    first_seen_at
from summed
where pod_count >= 3 and wait_hours_p95 >= $wait_hours_max

union all by name

select
    'GR701' as code,
    gpu_model as detail,
    columns('^(cluster|gpu_model)$'),
    short_gpu_hours as gpu_hours,
    -- A reliable forecast is close, and better than the last day's value by at least a tenth: a smaller difference may be chance.
    case
        when backtest_error_ratio is null or backtest_error_ratio > 0.3 then 'low'
        when backtest_error_ratio <= 0.1 and backtest_error_ratio <= 0.9 * naive_error_ratio then 'high'
        else 'medium'
    end as confidence,
    format(
        'demand is forecast to grow from {:,.0f} to the capacity of {:,.0f} GPU-hours a day in {}; error of past forecasts {:.0f} %',
        daily_allocated_gpu_hours, daily_usable_gpu_hours, counted(runway_day_count, 'day'), 100 * coalesce(backtest_error_ratio, 1)
    ) as evidence,
    $until_at::timestamp as first_seen_at
from period.demand_runway
where
    runway_day_count <= $lead_time_days
    -- Devices that are always allocated have no runway, and pending pods show that cost. Other demand has to grow to fill them.
    and daily_allocated_gpu_hours + coalesce(daily_overdue_gpu_hours, 0) < 0.99 * daily_usable_gpu_hours
