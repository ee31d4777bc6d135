-- Window and previous period side by side: capacity, ledger, energy, cost, waits and pending demand.
--
-- Values are not scaled. Effective, underutilized and idle hours are null, not 0, where hours of the same kind are not measured. Only clusters with all
-- days of both windows have rows. The wait is of the most common request size; pending demand is of the resource with the most.
--
-- grain:  cluster, period
-- reads:  period.capacity, period.cost, period.demand, period.wait, period.workload_ledger, previous.capacity, previous.cost, previous.demand, previous.wait,
--          previous.workload_ledger
-- params: previous_since_at, previous_until_at, since_at, until_at
-- source: period.capacity, period.workload_ledger, period.cost, period.demand and period.wait of both windows
-- columns: cluster, period, since_at, until_at, device_count, capacity_gpu_hours, allocated_gpu_hours, effective_gpu_hours, underutilized_gpu_hours,
--          active_unmeasured_gpu_hours, allocated_unmeasured_gpu_hours, allocated_idle_gpu_hours, reserved_idle_gpu_hours, fragmented_gpu_hours,
--          free_gpu_hours, unavailable_gpu_hours, unknown_gpu_hours, energy_joules, measured_gpu_hours, allocated_cost, priced_gpu_hours,
--          demanded_resource, unscheduled_unit_hours, placing_size, placed_pod_count, placing_seconds_p95, unknown_reasons
--   until_at                 UTC, its end, exclusive
--   device_count             GPUs that an exporter reports
--   energy_joules            J, for measured_gpu_hours
--   measured_gpu_hours       GPU-hours whose energy is known
--   allocated_cost           priced_gpu_hours x the model's price
with most_allocatable as (
    select
        cluster,
        arg_max(resource, { 'is_all': resource = 'gpu', 'hours': coalesce(allocatable_unit_hours, 0), 'name': resource }) as resource
    from period.demand
    group by cluster
),

-- Quantiles of several sizes cannot be added, and the mix may change: so only the most common size is compared.
commonest as (
    select
        cluster,
        size
    from period.wait
    where placed_pod_count > 0
    qualify row_number() over (partition by cluster order by placed_pod_count desc, size asc) = 1
),

capacity as (
    select
        period,
        cluster,
        count(distinct device_uuid) filter (where device_uuid != '') as device_count,
        sum(capacity_seconds) / 3600 as capacity_gpu_hours
    from both_periods(previous.capacity, period.capacity)
    where cluster in (select before.cluster from previous.capacity as before)
    group by period, cluster
),

bucket as (
    select *
    from both_periods(previous.workload_ledger, period.workload_ledger)
    pivot (
        coalesce(sum(gpu_hours), 0) as gpu_hours
        for bucket in (
            'effective', 'underutilized', 'active_unmeasured', 'allocated_unmeasured', 'allocated_idle', 'reserved_idle', 'fragmented', 'free',
            'unavailable', 'unknown'
        )
        group by period, cluster
    )
),

known as (
    select
        columns('^(period|cluster)$'),
        if(
            active_unmeasured_gpu_hours + allocated_unmeasured_gpu_hours > 0,
            nullif(columns('^(effective|underutilized)_gpu_hours$'), 0), columns('^(effective|underutilized)_gpu_hours$')
        ),
        if(allocated_unmeasured_gpu_hours > 0, nullif(allocated_idle_gpu_hours, 0), allocated_idle_gpu_hours) as allocated_idle_gpu_hours
    from bucket
)

select
    capacity.cluster,
    capacity.period,
    if(capacity.period = 'now', $since_at::timestamp, $previous_since_at::timestamp) as since_at,
    if(capacity.period = 'now', $until_at::timestamp, $previous_until_at::timestamp) as until_at,
    capacity.device_count,
    capacity.capacity_gpu_hours,
    bucket.effective_gpu_hours + bucket.underutilized_gpu_hours + bucket.active_unmeasured_gpu_hours
    + bucket.allocated_unmeasured_gpu_hours + bucket.allocated_idle_gpu_hours as allocated_gpu_hours,
    known.* similar to '.*_gpu_hours',
    bucket.* exclude (period, cluster, effective_gpu_hours, underutilized_gpu_hours, allocated_idle_gpu_hours),
    cost.energy_joules,
    coalesce(cost.measured_gpu_hours, 0) as measured_gpu_hours,
    cost.* similar to '^(allocated_cost|priced_gpu_hours)$',
    coalesce(most_allocatable.resource, '') as demanded_resource,
    demand.unscheduled_unit_hours,
    coalesce(commonest.size, '') as placing_size,
    wait.placed_pod_count,
    wait.placing_seconds_p95,
    unknown_reasons([
        ('effective_gpu_hours', if(known.effective_gpu_hours is null, 'not_collected', null)),
        ('underutilized_gpu_hours', if(known.underutilized_gpu_hours is null, 'not_collected', null)),
        ('allocated_idle_gpu_hours', if(known.allocated_idle_gpu_hours is null, 'not_collected', null)),
        ('energy_joules', if(cost.energy_joules is null, 'not_collected', null)),
        ('allocated_cost', if(cost.allocated_cost is null, 'not_configured', null)),
        ('priced_gpu_hours', if(cost.allocated_cost is null, 'not_configured', null)),
        ('unscheduled_unit_hours', if(demand.unscheduled_unit_hours is null, 'not_collected', null)),
        ('placed_pod_count', if(wait.placed_pod_count is null, 'no_pod', null)),
        ('placing_seconds_p95', if(wait.placing_seconds_p95 is null, 'no_pod', null))
    ]) as unknown_reasons
from capacity
inner join bucket
    using (period, cluster)
inner join known
    using (period, cluster)
left join both_periods(previous.cost, period.cost) as cost
    using (period, cluster)
left join most_allocatable
    using (cluster)
left join both_periods(previous.demand, period.demand) as demand
    using (period, cluster, resource)
left join commonest
    using (cluster)
left join both_periods(previous.wait, period.wait) as wait
    using (period, cluster, size)
