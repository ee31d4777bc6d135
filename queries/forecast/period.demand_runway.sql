-- Capacity runway of each GPU model: time until forecast demand plus GPUs of waiting pods reaches capacity, and its reliability.
--
-- A model is full from the first day at 99 % of capacity, if at least four of the seven days from it are. A weekday's peak alone does not count. A
-- pod is overdue for each model that it may use after wait_hours_max; for none where another cause holds it back or its models are unknown.
-- Use and capacity are means of the days of the last week whose number of GPUs is within unseen_ratio of the last day's. A removed model has no row.
--
-- grain:  cluster, gpu_model
-- reads:  facts.node_allocation, period.capacity, period.demand_backtest, period.demand_day, period.demand_forecast, period.pod_wait
-- params: since_at, unseen_ratio, until_at, wait_hours_max
-- source: period.demand_forecast against what was usable in the last week
-- columns:
--   is_overdue_unknown  whether pods are not listed, or the GPUs of an overdue pod are unknown
with past as (
    select
        *,
        max(day) over (partition by cluster) as latest_day,
        max(day) filter (where is_counted) over model as last_day,
        arg_max(device_count, day) filter (where is_counted) over model as last_count,
        cluster in (
            select node.cluster from facts.node_allocation as node
            where node.start_at < $until_at and node.end_at > $since_at
        ) as is_listed,
        is_counted and day > last_day - 7 and abs(device_count - last_count) <= $unseen_ratio * last_count as is_recent
    from period.demand_day
    window model as (partition by cluster, gpu_model)
),

recent as (
    select
        columns('^(cluster|gpu_model)$'),
        max(latest_day) as latest_day,
        bool_or(is_listed) as is_listed,
        count(*) filter (where is_counted) as day_count,
        count(*) filter (where not is_counted) as left_out_count,
        avg(allocated_gpu_hours) filter (where is_recent) as daily_allocated_gpu_hours,
        avg(usable_gpu_hours) filter (where is_recent) as daily_usable_gpu_hours
    from past
    group by cluster, gpu_model
    having max(day) = max(latest_day) or coalesce((
        select bool_or(replace(gpu.gpu_model, ' ', '-') = replace(past.gpu_model, ' ', '-'))
        from period.capacity as gpu
        where gpu.cluster = past.cluster and gpu.day = ($until_at::timestamp - interval 1 millisecond)::date
    ), true)
),

pending as (
    select
        *,
        greatest(0, epoch_ms(pending_until_at - greatest(
            pending_from_at, created_at + to_milliseconds(round($wait_hours_max * 3600000)::bigint)
        ))) as overdue_ms
    from period.pod_wait
),

level as (
    select
        recent.*,
        coalesce(bool_or(pod.requested_gpus is null and pod.overdue_ms > 0), bool_and(not recent.is_listed)) as is_overdue_unknown,
        if(
            is_overdue_unknown, null,
            sum(pod.requested_gpus * pod.overdue_ms) / 3600000 / (epoch($until_at::timestamp - $since_at::timestamp) / 86400)
        ) as daily_overdue_gpu_hours
    from recent
    left join pending as pod
        on
            recent.cluster = pod.cluster
            and pod.refusal = ''
            and (pod.wanted_model = 'any' or list_contains(string_split(pod.wanted_model, ', '), recent.gpu_model))
    group by all
),

due as (
    select
        recent.* similar to '^(cluster|gpu_model|daily_usable_gpu_hours)$',
        forecast.expected_gpu_hours,
        forecast.day - recent.latest_day as lead_day_count,
        0.99 * recent.daily_usable_gpu_hours - coalesce(recent.daily_overdue_gpu_hours, 0) as full_gpu_hours,
        forecast.expected_gpu_hours >= full_gpu_hours and count(*) filter (where forecast.expected_gpu_hours >= full_gpu_hours) over week >= 4 as is_full,
        forecast.high_gpu_hours >= full_gpu_hours and count(*) filter (where forecast.high_gpu_hours >= full_gpu_hours) over week >= 4 as is_early_full
    from level as recent
    inner join period.demand_forecast as forecast
        using (cluster, gpu_model)
    window week as (partition by cluster, gpu_model order by forecast.day rows between current row and 6 following)
),

ahead as (
    select
        columns('^(cluster|gpu_model)$'),
        min(lead_day_count) filter (where is_full) as runway_day_count,
        min(lead_day_count) filter (where is_early_full) as early_runway_day_count,
        sum(greatest(0, expected_gpu_hours - daily_usable_gpu_hours)) as short_gpu_hours,
        max(lead_day_count) as horizon_day_count
    from due
    group by cluster, gpu_model
),

backtest as (
    select
        columns('^(cluster|gpu_model)$'),
        count(distinct day) as backtest_day_count,
        median(allocated_gpu_hours - carried_gpu_hours) filter (where lead_day_count = 7) as weekly_change_gpu_hours,
        sum(abs(allocated_gpu_hours - expected_gpu_hours)) / nullif(sum(allocated_gpu_hours), 0) as backtest_error_ratio,
        sum(abs(allocated_gpu_hours - carried_gpu_hours)) / nullif(sum(allocated_gpu_hours), 0) as naive_error_ratio,
        count(*) filter (where is_within) / count(*) as backtest_within_ratio
    from period.demand_backtest
    group by cluster, gpu_model
)

select
    recent.* exclude (latest_day, is_listed),
    backtest.weekly_change_gpu_hours,
    ahead.* exclude (cluster, gpu_model),
    coalesce(backtest.backtest_day_count, 0) as backtest_day_count,
    backtest.* similar to '.*_ratio$'
from level as recent
left join ahead
    using (cluster, gpu_model)
left join backtest
    using (cluster, gpu_model)
