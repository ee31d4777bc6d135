-- Distribution of utilization, activity, memory, power and temperature over GPU-hours: quantiles by cluster, GPU model, team and workload.
--
-- Quantiles come from bins: exact to half a percentage point, 2.5 W, 0.5 °C. GPU-hours without a value are left out.
--
-- grain:  cluster, scope, gpu_model, team, namespace, workload_kind, workload, signal
-- reads:  facts.value_day, period.team
-- columns: cluster, scope, gpu_model, team, namespace, workload_kind, workload, signal, known_gpu_hours, weighted_gpu_hours, zero_ratio,
--          value_units_avg, value_units_p10, value_units_p25, value_units_p50, value_units_p75, value_units_p90, value_units_p95,
--          value_units_p99, value_units_max, cumulative_ratios
--   scope               subject of the distribution: cluster, model, team or workload
with binned as (
    select
        value_day.* exclude (day, bins, bin_milliseconds),
        coalesce(nullif(team.team, ''), value_day.namespace) as team,
        unnest(value_day.bins) as bin,
        unnest(value_day.bin_milliseconds) as milliseconds
    from facts.value_day
    left join period.team as team
        using (cluster, namespace)
),

added as (
    select
        cluster,
        case grouping(gpu_model, team, workload)
            when 7 then 'cluster'
            when 3 then 'model'
            when 5 then 'team'
            else 'workload'
        end as scope,
        coalesce(columns('^(gpu_model|team|namespace|workload_kind|workload)$'), '') as "\0",
        signal,
        bin,
        (bin * bin_width(signal))::double as value,
        sum(milliseconds) as milliseconds
    from binned
    group by
        cluster, signal, bin,
        grouping sets ((), (gpu_model), (team), (team, namespace, workload_kind, workload))
),

reached as (
    select
        *,
        ceil(bin / 5)::integer as step,
        coalesce(step != lead(step) over (of_signal order by bin), true) as is_end_of_step,
        sum(milliseconds) over (of_signal order by bin) / sum(milliseconds) over of_signal as reached_ratio
    from added
    where milliseconds > 0 and (scope in ('cluster', 'model') or (scope = 'team' and team != '') or workload != '')
    window of_signal as (partition by cluster, scope, gpu_model, team, namespace, workload_kind, workload, signal)
)

select
    columns('^(cluster|scope|gpu_model|team|namespace|workload_kind|workload|signal)$'),
    sum(milliseconds) / 3.6e6 as known_gpu_hours,
    sum(value * milliseconds) / 3.6e6 as weighted_gpu_hours,
    coalesce(sum(milliseconds) filter (where bin = 0), 0) / sum(milliseconds) as zero_ratio,
    sum(value * milliseconds) / sum(milliseconds) as value_units_avg,
    min(value) filter (where reached_ratio >= 0.1) as value_units_p10,
    min(value) filter (where reached_ratio >= 0.25) as value_units_p25,
    min(value) filter (where reached_ratio >= 0.5) as value_units_p50,
    min(value) filter (where reached_ratio >= 0.75) as value_units_p75,
    min(value) filter (where reached_ratio >= 0.9) as value_units_p90,
    min(value) filter (where reached_ratio >= 0.95) as value_units_p95,
    min(value) filter (where reached_ratio >= 0.99) as value_units_p99,
    max(value) as value_units_max,
    map_from_entries(
        list(((5 * step * bin_width(signal))::double, reached_ratio) order by bin) filter (where is_end_of_step)
    ) as cumulative_ratios
from reached
group by cluster, scope, gpu_model, team, namespace, workload_kind, workload, signal
