-- Cost of all capacity by team and workload; the rows add up to the cost of the fleet. Without prices the table is omitted.
--
-- Rows without a namespace are unallocated GPUs. Hours of a model without a price are in gpu_hours and not in priced_gpu_hours.
-- The cost of such a row is a lower bound; a part of which no hour has a price is null.
--
-- grain:  cluster, team, namespace, workload_kind, workload
-- reads:  period.charge
-- columns: cluster, team, namespace, workload_kind, workload, gpu_hours, priced_gpu_hours, total_cost, active_cost, idle_cost, unmeasured_cost,
--          unallocated_cost, unavailable_cost, unknown_cost, unknown_reasons
--   team              the namespace's team, else the namespace; '' where unallocated
--   gpu_hours         h of whole GPUs
--   idle_cost         cost of allocated or reserved hours without activity
with part as (
    select
        *,
        bucket in ('effective', 'underutilized', 'active_unmeasured') as is_active,
        bucket in ('allocated_idle', 'reserved_idle') as is_idle,
        bucket = 'allocated_unmeasured' as is_unmeasured,
        bucket in ('free', 'fragmented') as is_unallocated,
        bucket = 'unavailable' as is_unavailable,
        bucket = 'unknown' as is_unknown
    from period.charge
),

summed as (
    select
        columns('^(cluster|team|namespace|workload_kind|workload)$'),
        sum(gpu_hours) as gpu_hours,
        coalesce(sum(gpu_hours) filter (where hour_cost is not null), 0) as priced_gpu_hours,
        sum(hours_cost) as total_cost,
        -- 0 where there are no such hours; null where none of them has a price.
        coalesce(sum(if(columns('^is_(.*)$'), hours_cost, null)), if(bool_or(columns('^is_(.*)$')), null, 0 * sum(hours_cost))) as "\1_cost",
        bool_or(is_active or is_idle) or not bool_or(is_unmeasured) as is_measured
    from part
    group by cluster, team, namespace, workload_kind, workload
)

select
    * exclude (is_measured) replace (if(is_measured, active_cost, null) as active_cost, if(is_measured, idle_cost, null) as idle_cost),
    unknown_reasons([
        (part[1], case when part[2] is null then 'not_configured' when part[1] in ('active_cost', 'idle_cost') and not is_measured then 'not_collected' end)
        for part in list_zip(
            ['total_cost', 'active_cost', 'idle_cost', 'unmeasured_cost', 'unallocated_cost', 'unavailable_cost', 'unknown_cost'],
            [total_cost, active_cost, idle_cost, unmeasured_cost, unallocated_cost, unavailable_cost, unknown_cost]
        )
    ]) as unknown_reasons
from summed
