-- Price of a GPU-hour and of a kWh by model and UTC day: the configured price in force on that day.
--
-- A model without its own price has the price of the model all. Before its first date (UTC), a price is null.
--
-- grain:  gpu_model, day
-- reads:  facts.energy_hour, period.ledger
-- params: prices, since_at, until_at
-- source: prices of the configuration
-- columns:
--   gpu_model       '' where unknown
--   window_seconds  s of the day within the window
with wanted as (
    select
        coalesce(gpu_model, '') as gpu_model,
        day
    from period.ledger
    union by name
    select
        coalesce(gpu_model, '') as gpu_model,
        hour_start_at::date as day
    from facts.energy_hour
),

allocated as (
    select
        model.key as gpu_model,
        dated.key::date as start_day,
        dated.value::double as cost
    from json_each($prices::json, '$.gpu_hour') as model, json_each(model.value) as dated
    union all by name
    select
        'kWh' as gpu_model,
        key::date as start_day,
        value::double as cost
    from json_each($prices::json, '$.kwh')
)

select
    wanted.gpu_model,
    wanted.day,
    overlap_ms(wanted.day, wanted.day + interval 1 day, $since_at::timestamp, $until_at::timestamp) / 1000 as window_seconds,
    coalesce(
        arg_max(allocated.cost, allocated.start_day) filter (where allocated.gpu_model = wanted.gpu_model),
        arg_max(allocated.cost, allocated.start_day) filter (where allocated.gpu_model = 'all')
    ) as hour_cost,
    arg_max(allocated.cost, allocated.start_day) filter (where allocated.gpu_model = 'kWh') as kwh_cost
from wanted
left join allocated
    on
        allocated.gpu_model in (wanted.gpu_model, 'all', 'kWh')
        and allocated.start_day <= wanted.day
group by wanted.gpu_model, wanted.day
