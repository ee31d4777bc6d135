-- Expected wait by namespace, size and models, from the last 20 pods of the class, if past errors are below those of the median.
--
-- The back-test compares the class with the median of all pods, for each placed pod, with data from before its creation. The wait is null
-- while pods that wait longer than the p90 are more than a tenth of the 20 and all waiting pods together.
--
-- grain:  cluster, namespace, size, wanted_model
-- reads:  period.pod_wait
-- source: period.pod_wait
-- columns: cluster, namespace, size, wanted_model, expected_seconds_p50, expected_seconds_p90, backtest_pod_count, error_seconds_avg,
--          median_error_seconds_avg, within_minute_ratio, within_ten_minutes_ratio, unknown_reasons
with placed as (
    select
        columns('^(cluster|namespace|pod|size|wanted_model|created_at|placing_seconds)$'),
        created_at + to_milliseconds(round(placing_seconds * 1000)::bigint) as placed_at
    from period.pod_wait
    where is_placed and placing_seconds is not null
),

rolled as (
    select
        *,
        quantile_cont(placing_seconds, [0.5, 0.9]) over last_ones as estimates,
        median(placing_seconds) over (partition by cluster order by placed_at) as median_seconds -- of pods up to and at this time
    from placed
    window last_ones as (
        partition by cluster, namespace, size, wanted_model
        order by placed_at, pod
        rows between 19 preceding and current row
    )
),

known as (
    select *
    from rolled
    qualify row_number() over (partition by cluster, namespace, size, wanted_model, placed_at order by pod desc) = 1
),

judged as (
    select
        placed.* similar to '^(cluster|namespace|size|wanted_model)$',
        abs(placed.placing_seconds - known.estimates[1]) as error_seconds,
        abs(placed.placing_seconds - plain.median_seconds) as median_error_seconds
    -- Many pods are placed within the second of their creation: no forecast for a pod may use the pod itself.
    from (select * replace (created_at - interval 1 microsecond as placed_at) from placed) as placed
    asof inner join known
        using (cluster, namespace, size, wanted_model, placed_at)
    asof inner join rolled as plain
        using (cluster, placed_at)
),

tested as (
    select
        columns('^(cluster|namespace|size|wanted_model)$'),
        count(*) as backtest_pod_count,
        avg(error_seconds) as error_seconds_avg,
        avg(median_error_seconds) as median_error_seconds_avg,
        count(*) filter (where error_seconds <= 60) / count(*) as within_minute_ratio,
        count(*) filter (where error_seconds <= 600) / count(*) as within_ten_minutes_ratio
    from judged
    group by all
),

latest as (
    select
        columns('^(cluster|namespace|size|wanted_model)$'),
        arg_max(estimates, placed_at) as estimates
    from known
    group by all
),

waiting as (
    select
        columns('^(cluster|namespace|size|wanted_model)$'),
        count(*) filter (where pod.waiting_seconds > latest.estimates[2]) > 0.1 * (20 + count(*)) as is_longer
    from period.pod_wait as pod
    inner join latest
        using (cluster, namespace, size, wanted_model)
    where pod.is_waiting
    group by all
),

why as (
    select
        latest.*,
        tested.* exclude (cluster, namespace, size, wanted_model) replace (coalesce(tested.backtest_pod_count, 0) as backtest_pod_count),
        case
            when coalesce(tested.backtest_pod_count, 0) < 20 then 'too_few_pods'
            when tested.error_seconds_avg >= tested.median_error_seconds_avg then 'no_better'
            when waiting.is_longer then 'still_waiting'
        end as reason
    from latest
    left join tested
        using (cluster, namespace, size, wanted_model)
    left join waiting
        using (cluster, namespace, size, wanted_model)
)

select
    columns('^(cluster|namespace|size|wanted_model)$'),
    if(reason is null, estimates[1], null) as expected_seconds_p50,
    if(reason is null, estimates[2], null) as expected_seconds_p90,
    backtest_pod_count,
    columns('^(error_seconds_avg|median_error_seconds_avg|within_.*_ratio)$'),
    unknown_reasons(
        [(name, reason) for name in ['expected_seconds_p50', 'expected_seconds_p90']]
        || [
            (name, if(error_seconds_avg is null, 'too_few_pods', null))
            for name in ['error_seconds_avg', 'median_error_seconds_avg', 'within_minute_ratio', 'within_ten_minutes_ratio']
        ]
    ) as unknown_reasons
from why
