-- Energy counter against integrated power, and idle power of contexts, by model and UTC day.
--
-- A context is a program that holds a GPU alone and does nothing on it. Published values are 26 to 50 W above idle on GPUs with HBM, and 66 W with
-- GDDR6. Values outside 26 to 66 W, over an hour or more, suggest a wrong baseline or sensor.
--
-- grain:  cluster, gpu_model, day
-- reads:  facts.device_day, facts.device_power_day, facts.power_day, period.sensor_accuracy
-- source: facts.device_power_hour, facts.power_hour; Model Parking Tax (arXiv 2605.23918) for contexts; queries/catalog/gpu_model.csv
-- columns: cluster, gpu_model, day, device_count, measured_joules, counter_joules, integral_joules, corrected_joules, counter_integral_ratio,
--          power_accuracy_ratio, power_sensed_ratio, context_watts_avg, context_seconds, is_context_unusual, unknown_reasons
with place as (
    select
        columns('^(cluster|device_uuid|day)$'),
        max(gpu_model) as gpu_model
    from facts.device_day
    where gpu_instance_id = ''
    group by all
),

context as (
    select
        place.* similar to '^(cluster|gpu_model|day)$',
        sum(allocated.allocated_idle_joules) as context_joules,
        sum(allocated.held_seconds) as context_seconds
    from facts.power_day as allocated
    inner join place
        using (cluster, device_uuid, day)
    where allocated.method = 'exclusive' and allocated.gpu_instance_id = '' and allocated.idle_joules is not null and allocated.activity_unknown_seconds = 0
    group by all
),

summed as (
    select
        place.* similar to '^(cluster|gpu_model|day)$',
        count(power.measured_joules) as device_count,
        sum(columns('^(measured|counter|integral|corrected)_joules$'))
    from facts.device_power_day as power
    inner join place
        using (cluster, device_uuid, day)
    group by all
    having count(power.measured_joules) > 0
)

select
    summed.*,
    summed.counter_joules / nullif(summed.integral_joules, 0) as counter_integral_ratio,
    accuracy.accuracy_ratio as power_accuracy_ratio,
    accuracy.sensed_ratio as power_sensed_ratio,
    context.context_joules / nullif(context.context_seconds, 0) as context_watts_avg,
    coalesce(context.context_seconds, 0) as context_seconds,
    coalesce(context.context_seconds >= 3600 and context_watts_avg not between 26 and 66, false) as is_context_unusual,
    unknown_reasons([
        ('counter_joules', if(summed.counter_joules is null, 'not_collected', null)),
        ('integral_joules', if(summed.integral_joules is null, 'not_collected', null)),
        ('counter_integral_ratio', if(counter_integral_ratio is null, 'not_collected', null)),
        ('corrected_joules', if(summed.corrected_joules is null, 'older_facts', null)),
        ('power_accuracy_ratio', if(accuracy.accuracy_ratio is null, 'accuracy_unknown', null)),
        ('power_sensed_ratio', if(accuracy.sensed_ratio is null, 'accuracy_unknown', null)),
        ('context_watts_avg', if(context_watts_avg is null, 'no_time', null))
    ]) as unknown_reasons
from summed
left join context
    using (cluster, gpu_model, day)
left join period.sensor_accuracy as accuracy
    using (gpu_model)
