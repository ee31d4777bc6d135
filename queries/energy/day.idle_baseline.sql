-- Idle power of each GPU on a day, by MIG layout, and its source.
--
-- The first available source counts: (1) the configured value, for the device, its model or all GPUs; (2) the observed value, exceeded for 95 % of
-- the GPU's free time in the last four weeks; (3) the median of such values of the same model, first with the same partitioning; (4) the documented
-- value of the model. Without a source there is no row. The lowest power is no baseline, because a GPU may be busy all the time.
--
-- grain:  cluster, device_uuid, layout
-- reads:  day.device_layout, day.device_run, facts.idle_power_hour
-- params: gpu_models, idle_watts
-- source: facts.idle_power_hour of the day and the 27 before it; power.idle_watts of the configuration; queries/catalog/gpu_model.csv
with device as (
    select
        columns('^(cluster|device_uuid)$'),
        max(gpu_model) as gpu_model
    from day.device_run
    group by cluster, device_uuid
),

wanted as (
    select
        *,
        '' as layout
    from device
    union by name
    select
        device_layout.cluster,
        device_layout.device_uuid,
        device.gpu_model,
        device_layout.layout
    from day.device_layout
    inner join device
        using (cluster, device_uuid)
),

bin as (
    select
        columns('^(cluster|device_uuid|layout|bin_watts)$'),
        max(gpu_model) as gpu_model,
        sum(idle_seconds) as idle_seconds
    from facts.idle_power_hour
    group by cluster, device_uuid, layout, bin_watts
),

ranked as (
    select
        *,
        sum(idle_seconds) over (
            partition by cluster, device_uuid, layout
            order by bin_watts
        ) as up_to_seconds,
        sum(idle_seconds) over (partition by cluster, device_uuid, layout) as all_seconds
    from bin
),

observed as (
    select
        columns('^(cluster|device_uuid|layout)$'),
        max(gpu_model) as gpu_model,
        min(bin_watts) filter (where up_to_seconds >= 0.05 * all_seconds)::double as idle_watts
    from ranked
    group by cluster, device_uuid, layout
),

alike as (
    select
        columns('^(cluster|gpu_model|layout)$'),
        quantile_disc(idle_watts, 0.5) as idle_watts
    from observed
    where gpu_model != ''
    group by cluster, gpu_model, layout
),

model as (
    select
        columns('^(cluster|gpu_model)$'),
        quantile_disc(idle_watts, 0.5) as idle_watts
    from observed
    where gpu_model != ''
    group by cluster, gpu_model
),

configured as (
    select
        key as name,
        value::double as idle_watts
    from json_each($idle_watts::json)
),

listed as (
    select unnest(from_json($gpu_models::json, '[{"gpu_model": "VARCHAR", "idle_watts": "VARCHAR"}]'), recursive := true)
),

documented as (
    select
        device.gpu_model,
        max(nullif(listed.idle_watts, '')::double) as idle_watts
    from device
    inner join listed on device.gpu_model glob listed.gpu_model
    group by device.gpu_model
),

found as (
    select
        wanted.*,
        coalesce(own.idle_watts, by_model.idle_watts, by_all.idle_watts) as configured_watts,
        observed.idle_watts as observed_watts,
        coalesce(alike.idle_watts, model.idle_watts) as model_watts,
        documented.idle_watts as documented_watts
    from wanted
    left join configured as own on wanted.device_uuid = own.name
    left join configured as by_model on wanted.gpu_model = by_model.name
    left join configured as by_all on by_all.name = 'all'
    left join alike
        using (cluster, gpu_model, layout)
    left join model
        using (cluster, gpu_model)
    left join observed
        using (cluster, device_uuid, layout)
    left join documented on wanted.gpu_model = documented.gpu_model
)

select
    columns('^(cluster|device_uuid|layout)$'),
    coalesce(configured_watts, observed_watts, model_watts, documented_watts) as idle_watts,
    case
        when configured_watts is not null then 'configured'
        when observed_watts is not null then 'observed'
        when model_watts is not null then 'same_model'
        else 'documented'
    end as idle_source
from found
where coalesce(configured_watts, observed_watts, model_watts, documented_watts) is not null
