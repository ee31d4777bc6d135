-- Idle GPU-hours of each namespace, largest first, with its share of the cluster's idle GPU-hours.
--
-- Namespaces without idle hours have no row. Underutilized hours are a separate column and not idle, because the GPUs were active.
--
-- grain:  cluster, namespace
-- reads:  facts.pod_wait, period.charge
-- columns: cluster, namespace, idle_gpu_hours, allocated_idle_gpu_hours, reserved_idle_gpu_hours, underutilized_gpu_hours,
--          idle_ratio, cumulative_idle_ratio, idle_cost, unknown_reasons
--   idle_gpu_hours            h of whole GPUs, allocated or reserved and not active
--   allocated_idle_gpu_hours  part of idle_gpu_hours, allocated to pods
--   reserved_idle_gpu_hours   part of idle_gpu_hours, reserved by a claim and not allocated to a pod; null where claims are not listed
--   idle_cost                 idle_gpu_hours x the model's price
with idle as (
    select
        columns('^(cluster|namespace)$'),
        bool_and(bucket = 'allocated_unmeasured') filter (where bucket != 'reserved_idle') as lacks_use,
        coalesce(sum(gpu_hours) filter (where bucket = 'allocated_idle'), if(lacks_use, null, 0)) as allocated_idle_gpu_hours,
        coalesce(
            sum(gpu_hours) filter (where bucket = 'reserved_idle'),
            if(bool_or((cluster, 'resourceclaims.resource.k8s.io') in (select (pod.cluster, pod.resource) from facts.pod_wait as pod)), null, 0)
        ) as reserved_idle_gpu_hours,
        coalesce(sum(gpu_hours) filter (where bucket in ('allocated_idle', 'reserved_idle')), 0) as idle_gpu_hours,
        bool_or(bucket like '%unmeasured') and not bool_or(bucket = 'effective') as lacks_sm,
        coalesce(sum(gpu_hours) filter (where bucket = 'underutilized'), if(lacks_sm, null, 0)) as underutilized_gpu_hours,
        -- If the hours of one model have no price, the sum is unknown.
        if(
            bool_and(hour_cost is not null) filter (where bucket in ('allocated_idle', 'reserved_idle')),
            sum(hours_cost) filter (where bucket in ('allocated_idle', 'reserved_idle')), null
        ) as idle_cost
    from period.charge
    where namespace != ''
    group by all
    having idle_gpu_hours > 0
)

select
    columns('^(cluster|namespace|idle_gpu_hours|allocated_idle_gpu_hours|reserved_idle_gpu_hours|underutilized_gpu_hours)$'),
    idle_gpu_hours / sum(idle_gpu_hours) over (partition by cluster) as idle_ratio,
    sum(idle_gpu_hours) over (
        partition by cluster
        order by idle_gpu_hours desc, namespace asc
        rows between unbounded preceding and current row
    ) / sum(idle_gpu_hours) over (partition by cluster) as cumulative_idle_ratio,
    idle_cost,
    unknown_reasons([
        ('allocated_idle_gpu_hours', if(allocated_idle_gpu_hours is null, 'not_collected', null)),
        ('reserved_idle_gpu_hours', if(reserved_idle_gpu_hours is null, 'not_looked_at', null)),
        ('idle_cost', if(idle_cost is null, 'not_configured', null)), ('underutilized_gpu_hours', if(underutilized_gpu_hours is null, 'not_collected', null))
    ]) as unknown_reasons
from idle
