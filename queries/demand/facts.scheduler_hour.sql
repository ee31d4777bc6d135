-- Requested and allocatable units of each accelerator resource per hour and gauge: seconds and maxima that add up.
--
-- Gauges are the columns of day.demand_step and two ratios of them. A gauge that a source does not know has no row. OpenCost's own gauges,
-- if Prometheus has them, are another source. A gauge of pods has no row if it is known for less of the hour than the number of pods: some
-- pod makes it unknown, and the time without that pod is no mean of the hour.
--
-- revision: 20
-- grain:  cluster, resource, hour_start_at, source, gauge
-- reads:  day.demand_step, lake.sample, lake.series
-- source: day.demand_step; OpenCost's cluster_gpu_pending_pod_count, _pending_request_total, _requested_allocatable_ratio
-- columns: cluster, resource, is_opencosts, hour_start_at, source, gauge, observed_seconds, value_unit_seconds, value_units_max
--   is_opencosts        whether OpenCost itself counts the resource
--   source              snapshot, kube-state-metrics or opencost
--   observed_seconds    s in which the gauge was known
with gauge as (
    select
        columns('^(cluster|source|resource|is_opencosts|start_at|end_at)$'),
        columns('_(count|units)$')::double,
        requested_units / nullif(allocatable_units, 0) as requested_allocatable_ratio,
        (allocated_units + unscheduled_units) / nullif(schedulable_units, 0) as demand_schedulable_ratio
    from day.demand_step
),

hourly as (
    select
        *,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from gauge
    unpivot (value for gauge in (columns('_(count|units|ratio)$')))
),

allocated as (
    select
        * exclude (start_at, end_at),
        overlap_ms(start_at, end_at, hour_start_at, hour_start_at + interval 1 hour) / 1000 as held_seconds
    from hourly
    union all by name
    select
        series.*,
        labels['resource'] as resource,
        case signal
            when 'cluster_gpu_pending_pod_count' then 'pending_pod_count'
            when 'cluster_gpu_pending_request_total' then 'pending_request_units'
            when 'cluster_gpu_requested_allocatable_ratio' then 'requested_allocatable_ratio'
        end as gauge,
        true as is_opencosts,
        date_trunc('hour', sample.seen_at)::timestamp as hour_start_at,
        'opencost' as source,
        sample.value,
        sample.held_seconds
    from lake.series
    inner join lake.sample
        using (cluster, series_id)
    where starts_with(signal, 'cluster_gpu_')
)

select
    columns('^(cluster|resource|hour_start_at|source|gauge)$'),
    bool_or(is_opencosts) as is_opencosts,
    sum(held_seconds) as observed_seconds,
    sum(value * held_seconds) as value_unit_seconds,
    max(value) as value_units_max
from allocated
where held_seconds > 0
group by cluster, resource, hour_start_at, source, gauge
window of_hour as (partition by cluster, resource, hour_start_at, source)
qualify
    source = 'opencost'
    or gauge similar to '(allocatable|schedulable|cordoned|not_ready)_units|requested_allocatable_ratio'
    -- The other ratio is also missing where nothing is schedulable.
    or if(
        gauge = 'demand_schedulable_ratio', max(if(gauge = 'unscheduled_units', sum(held_seconds), 0)) over of_hour, sum(held_seconds)
    ) + 0.001 > max(if(gauge = 'pending_pod_count', sum(held_seconds), 0)) over of_hour
