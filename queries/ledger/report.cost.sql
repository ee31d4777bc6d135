-- Cost, energy and emissions of the GPUs by the configured prices and factors. Without any of these the table is omitted.
--
-- Allocated time without data comes from requests. Used time is time with data, weighted by activity. Energy is separate from both costs.
-- idle_policy assigns idle energy to holders, or leaves it unallocated. Each hour has its UTC day's price and the grid's mean intensity.
--
-- grain:  cluster, day, namespace, gpu_model
-- reads:  facts.energy_hour, period.charge, period.price, period.sensor_accuracy, period.team
-- params: carbon, idle_policy, since_at, timezone, until_at
-- source: facts.energy_hour; without telemetry: period.charge; prices: period.price; carbon of the configuration
-- columns: cluster, day, namespace, gpu_model, team, allocated_gpu_hours, used_gpu_hours, allocated_cost, used_cost, energy_kwh,
--          energy_method, energy_accuracy_ratio, facility_kwh, energy_cost, co2e_grams, co2e_market_grams, unmeasured_gpu_hours, unknown_reasons
--   day                   day of the report's time zone
--   used_gpu_hours        allocated GPU-hours x their activity; null if activity is unknown in any hour
--   allocated_cost        allocated_gpu_hours x the model's price
--   unmeasured_gpu_hours  allocated GPU-hours of unknown energy, excluded from energy, its cost and emissions
with intensity as (
    select
        (value ->> 'basis') as basis,
        (value ->> 'start_at')::timestamp as start_at,
        (value ->> 'grams_per_kwh')::double as kwh_grams,
        lead(start_at, 1, timestamp '9999-01-01') over (partition by basis order by start_at) as end_at
    from json_each($carbon::json, '$.grams_per_kwh')
),

-- Only hours whose carbon intensity is known throughout.
emission as (
    select
        hour.hour_start_at,
        intensity.basis,
        sum(intensity.kwh_grams * epoch(
            least(intensity.end_at, hour.hour_start_at + interval 1 hour) - greatest(intensity.start_at, hour.hour_start_at)
        )) / 3600 as kwh_grams
    from (select distinct hour_start_at from facts.energy_hour) as hour
    inner join intensity
        on
            intensity.start_at < hour.hour_start_at + interval 1 hour
            and intensity.end_at > hour.hour_start_at
    group by hour.hour_start_at, intensity.basis
    having min(intensity.start_at) <= hour.hour_start_at
),

charged as (
    select
        *,
        sum(idle_joules) over pool / nullif(sum(if(is_allocated, idle_joules, 0)) over pool, 0) as pool_ratio,
        energy_joules + case
            when $idle_policy = 'holder' then 0
            when $idle_policy = 'pool' then if(is_allocated, coalesce(pool_ratio - 1, 0), if(pool_ratio is null, 0, -1)) * idle_joules
            when is_allocated then -idle_joules
            else sum(if(is_allocated, idle_joules, 0)) over (partition by cluster, hour_start_at, node_name, gpu_model)
        end as charged_joules
    from (select * replace (coalesce(idle_joules, 0) as idle_joules) from facts.energy_hour) as energy
    window pool as (partition by cluster, gpu_model)
),

part as (
    select
        energy.* replace (
            -- A GPU's last sample measures no time.
            if(measured_gpu_seconds < 0.95 * gpu_seconds, gpu_seconds - measured_gpu_seconds, unmeasured_gpu_seconds) as unmeasured_gpu_seconds
        ),
        local_time(energy.hour_start_at, $timezone)::date as day,
        accuracy.accuracy_ratio,
        energy.share_error_joules / 3.6e6 as error_kwh,
        energy.charged_joules / 3.6e6 as gpu_kwh,
        energy.charged_joules / 3.6e6 * coalesce(($carbon::json ->> 'pue')::double, 1) as whole_kwh,
        location.kwh_grams as location_grams,
        market.kwh_grams as market_grams,
        price.hour_cost,
        price.kwh_cost
    from charged as energy
    left join period.sensor_accuracy as accuracy
        using (gpu_model)
    left join emission as location on energy.hour_start_at = location.hour_start_at and location.basis = 'location'
    left join emission as market on energy.hour_start_at = market.hour_start_at and market.basis = 'market'
    left join period.price as price on coalesce(energy.gpu_model, '') = price.gpu_model and energy.hour_start_at::date = price.day
    union all by name
    select
        columns('^(cluster|namespace|gpu_model|hour_cost)$'),
        -- In other time zones, a UTC day may start before the window's first day or end after its last day.
        least(greatest(day, local_time($since_at, $timezone)::date), local_time($until_at::timestamp - interval 1 millisecond, $timezone)::date) as day,
        requested_gpu_hours * 3600 as gpu_seconds,
        gpu_seconds as unmeasured_gpu_seconds
    from period.charge
    where requested_gpu_hours > 0
),

summed as (
    select
        columns('^(cluster|day|namespace|gpu_model)$'),
        sum(gpu_seconds) / 3600 as allocated_gpu_hours,
        if(count(used_gpu_seconds) = count(hour_start_at), sum(used_gpu_seconds), null) / 3600 as used_gpu_hours,
        if(count(hour_cost) = count(*), sum(gpu_seconds * hour_cost), null) / 3600 as allocated_cost,
        if(used_gpu_hours is null or allocated_cost is null, null, sum(used_gpu_seconds * hour_cost)) / 3600 as used_cost,
        sum(gpu_kwh) as energy_kwh,
        if(min(energy_method) < max(energy_method), 'mixed', min(energy_method)) as energy_method,
        min(accuracy_ratio) as sensor_ratio,
        if(energy_kwh is null, null, sensor_ratio + if(energy_kwh > 0, sum(error_kwh) / energy_kwh, 0)) as energy_accuracy_ratio,
        sum(whole_kwh) as facility_kwh,
        count(columns('^(kwh_cost|location_grams|market_grams)$')) = count(hour_start_at) as 'has_\1',
        if(has_kwh_cost, sum(whole_kwh * kwh_cost), null) as energy_cost,
        if(has_location_grams, sum(whole_kwh * location_grams), null) as co2e_grams,
        if(has_market_grams, sum(whole_kwh * market_grams), null) as co2e_market_grams,
        sum(unmeasured_gpu_seconds) / 3600 as unmeasured_gpu_hours
    from part
    group by cluster, day, namespace, gpu_model
)

select
    columns('^(cluster|day|namespace|gpu_model)$'),
    coalesce(team, '') as team,
    columns('^(allocated|used)_(gpu_hours|cost)$'),
    energy_kwh,
    coalesce(energy_method, 'none') as energy_method,
    if(energy_accuracy_ratio > 1, 1, energy_accuracy_ratio) as energy_accuracy_ratio,
    columns('^(facility_kwh|energy_cost|co2e_grams|co2e_market_grams|unmeasured_gpu_hours)$'),
    unknown_reasons([(name, if(energy_kwh is null, 'not_collected', null)) for name in ['energy_kwh', 'facility_kwh']] || [
        ('used_gpu_hours', if(used_gpu_hours is null, 'not_collected', null)),
        ('allocated_cost', if(allocated_cost is null, 'not_configured', null)),
        ('used_cost', if(used_cost is null, if(used_gpu_hours is null, 'not_collected', 'not_configured'), null)),
        ('energy_accuracy_ratio', if(energy_accuracy_ratio is null, if(sensor_ratio is null, 'accuracy_unknown', if(energy_kwh is null, 'not_collected', 'older_facts')), null)),
        ('energy_cost', if(energy_cost is null, if(has_kwh_cost, 'not_collected', 'not_configured'), null)),
        ('co2e_grams', if(co2e_grams is null, if(has_location_grams, 'not_collected', 'not_configured'), null)),
        ('co2e_market_grams', if(co2e_market_grams is null, if(has_market_grams, 'not_collected', 'not_configured'), null))
    ]) as unknown_reasons
from summed
left join period.team
    using (cluster, namespace)
