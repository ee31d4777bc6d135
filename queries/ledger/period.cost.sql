-- Cost of the allocated GPUs in the window, by the configured prices, and energy of all GPUs.
--
-- grain:  cluster
-- reads:  facts.device_power_day, facts.energy_hour, period.price
-- params: timezone
-- source: facts.energy_hour, facts.device_power_hour; prices: period.price
-- columns:
--   allocated_cost  allocated GPU-hours x the model's price, of models that have one; null without any
with cost as (
    select
        energy.cluster,
        sum(energy.gpu_seconds / 3600 * price.hour_cost) as allocated_cost
    from facts.energy_hour as energy
    inner join period.price as price
        on
            coalesce(energy.gpu_model, '') = price.gpu_model
            and local_time(energy.hour_start_at, $timezone)::date = price.day
    group by energy.cluster
),

energy as (
    select
        cluster,
        sum(measured_joules) as energy_joules
    from facts.device_power_day
    group by cluster
)

select *
from cost
full join energy
    using (cluster)
