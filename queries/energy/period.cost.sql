-- Cost of the allocated GPUs in the window, by the configured prices.
--
-- grain:  cluster
-- reads:  facts.energy_hour
-- params: prices
-- source: facts.energy_hour; prices of the configuration
-- columns:
--   allocated_cost  GPU-hours held x the model's price, of models that have one; null without any
with price as (
    select
        key as gpu_model,
        value::double as hour_cost
    from json_each($prices::json, '$.gpu_hour')
)

select
    energy.cluster,
    sum(energy.gpu_seconds / 3600 * coalesce(price.hour_cost, every.hour_cost)) as allocated_cost
from facts.energy_hour as energy
left join price on energy.gpu_model = price.gpu_model
left join price as every on every.gpu_model = 'all'
group by energy.cluster
