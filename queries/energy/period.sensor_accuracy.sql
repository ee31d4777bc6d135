-- Published accuracy of the power sensors of each GPU model in the window.
--
-- grain:  gpu_model
-- reads:  facts.device_day
-- params: gpu_models
-- source: queries/catalog/gpu_model.csv
with model as (
    select distinct gpu_model
    from facts.device_day
),

listed as (
    select unnest(from_json($gpu_models::json, '[{"gpu_model": "VARCHAR", "power_accuracy_ratio": "VARCHAR", "power_sensed_ratio": "VARCHAR"}]'), recursive := true)
)

select
    model.gpu_model,
    max(nullif(listed.power_accuracy_ratio, '')::double) as accuracy_ratio,
    max(nullif(listed.power_sensed_ratio, '')::double) as sensed_ratio
from model
inner join listed on model.gpu_model glob listed.gpu_model
group by model.gpu_model
