-- Requested and allocatable units of each accelerator resource per hour and gauge: seconds and maxima that add up.
--
-- The gauges are the columns of day.demand_step and two ratios of them; a gauge that a source does not know has no row. OpenCost's own
-- gauges, where Prometheus has them, are a source beside ours.
--
-- revision: 7
-- grain:  cluster, resource, hour_start_at, source, gauge
-- reads:  day.demand_step, lake.sample, lake.series
-- source: day.demand_step; OpenCost's cluster_gpu_pending_pod_count, _pending_request_total, _requested_allocatable_ratio
-- columns: cluster, resource, is_opencosts, hour_start_at, source, gauge, observed_seconds, value_unit_seconds, value_units_max
--   is_opencosts        OpenCost itself would count it
--   source              snapshot, kube-state-metrics or opencost
--   observed_seconds    s in which it was known
with step as (
    select
        * exclude (pending_pod_count, pending_request_units),
        unnest([
            { 'gauge': 'pending_pod_count', 'value': pending_pod_count },
            { 'gauge': 'pending_request_units', 'value': pending_request_units },
            { 'gauge': 'requested_units', 'value': requested_units },
            { 'gauge': 'allocatable_units', 'value': allocatable_units },
            { 'gauge': 'requested_allocatable_ratio', 'value': requested_units / nullif(allocatable_units, 0) },
            { 'gauge': 'gated_pod_count', 'value': gated_pod_count },
            { 'gauge': 'unscheduled_pod_count', 'value': unscheduled_pod_count },
            { 'gauge': 'unscheduled_units', 'value': unscheduled_units },
            { 'gauge': 'bound_pending_pod_count', 'value': bound_pending_pod_count },
            { 'gauge': 'bound_pending_units', 'value': bound_pending_units },
            { 'gauge': 'allocated_units', 'value': allocated_units },
            { 'gauge': 'schedulable_units', 'value': schedulable_units },
            { 'gauge': 'cordoned_units', 'value': cordoned_units },
            { 'gauge': 'not_ready_units', 'value': not_ready_units },
            {
                'gauge': 'demand_schedulable_ratio',
                'value': (allocated_units + unscheduled_units) / nullif(schedulable_units, 0)
            }
        ], recursive := true)
    from day.demand_step
),

hourly as (
    select
        *,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from step
    where value is not null
),

allocated as (
    select
        * exclude (start_at, end_at, value),
        value::double as value,
        (
            overlap_ms(start_at, end_at, hour_start_at, hour_start_at + interval 1 hour)
        ) / 1000 as held_seconds
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
    cluster,
    resource,
    bool_or(is_opencosts) as is_opencosts,
    hour_start_at,
    source,
    gauge,
    sum(held_seconds) as observed_seconds,
    sum(value * held_seconds) as value_unit_seconds,
    max(value) as value_units_max
from allocated
where held_seconds > 0
group by cluster, resource, hour_start_at, source, gauge
