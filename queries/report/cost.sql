-- What the GPUs cost and emitted, by the configured prices and factors; without any of them this table is not made.
--
-- Two bases: allocated is the time a GPU was held, whatever was done with it; used is that time weighted by the GPU's activity.
-- A sharer holds its part of a GPU, a MIG instance its compute slices of seven. Energy is its own line, the same on both bases.
--
-- grain:  cluster, day, namespace, gpu_model
-- reads:  facts.container_hour, facts.device_hour, facts.device_power_hour, facts.power_hour
-- params: since_at, until_at, prices, carbon
-- source: facts.power_hour; prices and carbon of the configuration
-- columns:
--   cluster              cluster name
--   day                  UTC day
--   namespace            workload namespace; '' for what nobody used
--   gpu_model            model; '' where unknown
--   allocated_gpu_hours  GPU-hours held
--   used_gpu_hours       GPU-hours held x activity of what was held; null where no activity is known
--   allocated_cost       allocated_gpu_hours x the model's price
--   used_cost            used_gpu_hours x the model's price
--   energy_kwh           kWh of the GPUs: active, held, idle and unattributed
--   facility_kwh         energy_kwh x PUE
--   energy_cost          facility_kwh x the price per kWh
--   co2e_grams           g CO2e, location-based: facility kWh of each hour x its grams per kWh
--   co2e_market_grams    g CO2e, market-based
--   unknown_reasons      figure name → why it is null (docs: queries/README.md); one entry for each null figure
with place as (
    select
        cluster,
        device_uuid,
        hour_start_at,
        max(gpu_model) as gpu_model
    from facts.device_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    group by cluster, device_uuid, hour_start_at
),

price as (
    select
        key as gpu_model,
        value::double as hour_cost
    from json_each($prices::json, '$.gpu_hour')
),

factor as (
    select
        coalesce(($carbon::json ->> 'pue')::double, 1) as pue_ratio,
        ($prices::json ->> 'kwh')::double as kwh_cost
),

intensity as (
    select
        (value ->> 'basis') as basis,
        (value ->> 'start_at')::timestamp as start_at,
        (value ->> 'grams_per_kwh')::double as kwh_grams
    from json_each($carbon::json, '$.grams_per_kwh')
),

held as (
    select
        cluster,
        device_uuid,
        hour_start_at,
        sum(idle_joules) as idle_joules
    from facts.power_hour
    group by cluster, device_uuid, hour_start_at
),

part as (
    select
        power.cluster,
        place.gpu_model,
        power.namespace,
        power.hour_start_at,
        power.gpu_seconds,
        power.gpu_seconds * coalesce(
            activity.gr_engine_active_ratio_seconds / activity.gr_engine_active_seen_seconds,
            activity.gpu_util_ratio_seconds / activity.gpu_util_seen_seconds
        ) as used_gpu_seconds,
        coalesce(power.active_joules, 0) + coalesce(power.held_joules, 0) + coalesce(power.idle_joules, 0) as energy_joules,
        true as is_held
    from facts.power_hour as power
    inner join place
        on
            power.cluster = place.cluster
            and power.device_uuid = place.device_uuid
            and power.hour_start_at = place.hour_start_at
    left join facts.container_hour as activity
        on
            power.cluster = activity.cluster
            and power.namespace = activity.namespace
            and power.pod = activity.pod
            and power.pod_uid = activity.pod_uid
            and power.container = activity.container
            and power.device_uuid = activity.device_uuid
            and power.gpu_instance_id = activity.gpu_instance_id
            and power.hour_start_at = activity.hour_start_at
    union all by name
    select
        device.cluster,
        place.gpu_model,
        '' as namespace,
        device.hour_start_at,
        0 as gpu_seconds,
        0 as used_gpu_seconds,
        coalesce(device.idle_joules, 0) - coalesce(held.idle_joules, 0) + coalesce(device.unattributed_joules, 0) as energy_joules,
        false as is_held
    from facts.device_power_hour as device
    inner join place
        on
            device.cluster = place.cluster
            and device.device_uuid = place.device_uuid
            and device.hour_start_at = place.hour_start_at
    left join held
        on
            device.cluster = held.cluster
            and device.device_uuid = held.device_uuid
            and device.hour_start_at = held.hour_start_at
),

location as (
    select
        hour_start_at,
        max_by(kwh_grams, start_at) filter (where basis = 'location') as location_grams,
        max_by(kwh_grams, start_at) filter (where basis = 'market') as market_grams
    from (select distinct hour_start_at from place) as hour
    inner join intensity on hour.hour_start_at >= intensity.start_at
    group by hour_start_at
),

emitted as (
    select
        part.*,
        part.hour_start_at::date as day,
        part.energy_joules / 3.6e6 * factor.pue_ratio as facility_kwh,
        location.location_grams,
        location.market_grams
    from part
    cross join factor
    left join location on part.hour_start_at = location.hour_start_at
),

summed as (
    select
        cluster,
        day,
        namespace,
        gpu_model,
        sum(gpu_seconds) / 3600 as allocated_gpu_hours,
        if(count(used_gpu_seconds) = count(*), sum(used_gpu_seconds), null) / 3600 as used_gpu_hours,
        greatest(0, sum(energy_joules)) / 3.6e6 as energy_kwh,
        greatest(0, sum(facility_kwh)) as facility_kwh,
        if(count(location_grams) = count(*), greatest(0, sum(facility_kwh * location_grams)), null) as co2e_grams,
        if(count(market_grams) = count(*), greatest(0, sum(facility_kwh * market_grams)), null) as co2e_market_grams
    from emitted
    group by cluster, day, namespace, gpu_model
),

priced as (
    select
        summed.*,
        summed.allocated_gpu_hours * coalesce(price.hour_cost, every.hour_cost) as allocated_cost,
        summed.used_gpu_hours * coalesce(price.hour_cost, every.hour_cost) as used_cost,
        summed.facility_kwh * factor.kwh_cost as energy_cost
    from summed
    cross join factor
    left join price on summed.gpu_model = price.gpu_model
    left join price as every on every.gpu_model = 'all'
)

select
    cluster,
    day,
    namespace,
    gpu_model,
    allocated_gpu_hours,
    used_gpu_hours,
    allocated_cost,
    used_cost,
    energy_kwh,
    facility_kwh,
    energy_cost,
    co2e_grams,
    co2e_market_grams,
    map_from_entries([entry for entry in [
        { 'figure': 'used_gpu_hours', 'reason': if(used_gpu_hours is null, 'not_collected', null) },
        { 'figure': 'allocated_cost', 'reason': if(allocated_cost is null, 'not_configured', null) },
        { 'figure': 'used_cost', 'reason': case
            when used_cost is not null then null
            when used_gpu_hours is null then 'not_collected'
            else 'not_configured'
        end },
        { 'figure': 'energy_cost', 'reason': if(energy_cost is null, 'not_configured', null) },
        { 'figure': 'co2e_grams', 'reason': if(co2e_grams is null, 'not_configured', null) },
        { 'figure': 'co2e_market_grams', 'reason': if(co2e_market_grams is null, 'not_configured', null) }
    ] if entry.reason is not null]) as unknown_reasons
from priced
order by all
