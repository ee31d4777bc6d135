-- Cost of all capacity by team and workload; the rows add up to the cost of the fleet. Without prices the table is omitted.
--
-- Rows without a namespace are unallocated GPUs. Hours of a model without a price are in gpu_hours and not in priced_gpu_hours.
-- The cost of such a row is a lower bound.
--
-- grain:  cluster, team, namespace, workload_kind, workload
-- reads:  period.charge
-- columns: cluster, team, namespace, workload_kind, workload, gpu_hours, priced_gpu_hours, total_cost, active_cost, idle_cost, unmeasured_cost,
--          unallocated_cost, unavailable_cost, unknown_cost, unknown_reasons
--   team              the namespace's team, else the namespace; '' where unallocated
--   gpu_hours         h of whole GPUs
--   idle_cost         cost of allocated or reserved hours without activity
with summed as (
    select
        columns('^(cluster|team|namespace|workload_kind|workload)$'),
        sum(gpu_hours) as gpu_hours,
        coalesce(sum(gpu_hours) filter (where hour_cost is not null), 0) as priced_gpu_hours,
        sum(hours_cost) as total_cost,
        -- 0 where there are no such hours; null where no hour has a price.
        bool_or(bucket in ('effective', 'underutilized', 'active_unmeasured', 'allocated_idle', 'reserved_idle'))
        or not bool_or(bucket = 'allocated_unmeasured') as is_measured,
        if(is_measured, sum(hours_cost * (bucket in ('effective', 'underutilized', 'active_unmeasured'))::int), null) as active_cost,
        if(is_measured, sum(hours_cost * (bucket in ('allocated_idle', 'reserved_idle'))::int), null) as idle_cost,
        sum(hours_cost * (bucket = 'allocated_unmeasured')::int) as unmeasured_cost,
        sum(hours_cost * (bucket in ('free', 'fragmented'))::int) as unallocated_cost,
        sum(hours_cost * (bucket = 'unavailable')::int) as unavailable_cost,
        sum(hours_cost * (bucket = 'unknown')::int) as unknown_cost
    from period.charge
    group by cluster, team, namespace, workload_kind, workload
)

select
    * exclude (is_measured),
    unknown_reasons([
        (name, case when total_cost is null then 'not_configured' when name in ('active_cost', 'idle_cost') and not is_measured then 'not_collected' end)
        for name in ['total_cost', 'active_cost', 'idle_cost', 'unmeasured_cost', 'unallocated_cost', 'unavailable_cost', 'unknown_cost']
    ]) as unknown_reasons
from summed
