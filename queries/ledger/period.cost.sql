-- Cost of the allocated GPUs in the window, by the configured prices, and energy of all GPUs.
--
-- grain:  cluster
-- reads:  facts.device_power_day, period.charge
-- source: period.charge, facts.device_power_hour
-- columns:
--   allocated_cost  allocated GPU-hours x the model's price, for models with a price; null if none has one
with cost as (
    select
        cluster,
        sum(hours_cost) as allocated_cost,
        sum(gpu_hours) filter (where hour_cost is not null) as priced_gpu_hours
    from period.charge
    where namespace != '' and bucket != 'reserved_idle'
    group by cluster
),

energy as (
    select
        cluster,
        sum(measured_joules) as energy_joules,
        sum(measured_seconds) / 3600 as measured_gpu_hours
    from facts.device_power_day
    group by cluster
)

select *
from cost
full join energy
    using (cluster)
