-- Cost of the allocated GPUs in the window, by the configured prices.
--
-- grain:  cluster
-- reads:  facts.energy_hour, period.price
-- params: timezone
-- source: facts.energy_hour; prices: period.price
-- columns:
--   allocated_cost  allocated GPU-hours x the model's price, of models that have one; null without any
select
    energy.cluster,
    sum(energy.gpu_seconds / 3600 * price.hour_cost) as allocated_cost
from facts.energy_hour as energy
inner join period.price as price
    on
        coalesce(energy.gpu_model, '') = price.gpu_model
        and local_time(energy.hour_start_at, $timezone)::date = price.day
group by energy.cluster
