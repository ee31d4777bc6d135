-- Outcome of each quota per day, with its causes, in one sentence.
--
-- grain:  cluster, scheduler, quota, resource, flavor, day
-- reads:  facts.quota_hour, facts.quota_pair_hour
-- params: since_at, timezone, until_at
-- columns: cluster, scheduler, quota, resource, flavor, day, sentence
--   day       day of the report's time zone
--   sentence  means over known time in the resource's own unit, and causes of a shortage
with day as (
    select
        columns('^(cluster|system|quota|resource|flavor)$'),
        local_time(hour_start_at, $timezone)::date as day,
        any_value(regexp_replace(native_unit, '(device|instance|unit)$', '\1s')) as unit,
        sum(delivered_native_hours) * 3600 / sum(observed_seconds) as delivered,
        sum(demanded_native_hours) * 3600 / nullif(sum(demand_seconds), 0) as demanded,
        sum(guaranteed_native_hours) * 3600 / nullif(sum(guaranteed_seconds), 0) as guaranteed,
        sum(borrowed_native_hours) * 3600 / nullif(sum(coalesce(own_seconds, observed_seconds)), 0) as borrowed,
        sum(lent_native_hours) * 3600 / nullif(sum(coalesce(lent_seconds, observed_seconds)), 0) as lent,
        sum(columns('^(demand|observed|starved|capped)_seconds$'))
    from facts.quota_hour
    where not is_parent and is_in_period(hour_start_at, $since_at, $until_at)
    group by all
    having sum(observed_seconds) > 0
),

borrower as (
    select
        columns('^(cluster|system|quota|resource|flavor)$'),
        local_time(hour_start_at, $timezone)::date as day,
        borrower,
        sum(together_seconds) as seconds
    from facts.quota_pair_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by all
),

behind as (
    select
        * exclude (borrower, seconds),
        string_agg(borrower, ', ' order by seconds desc, borrower asc) as borrowers
    from borrower
    group by all
)

select
    cluster,
    system as scheduler,
    columns('^(quota|resource|flavor|day)$'),
    concat(
        quota,
        case
            when demanded is null then format(': {} {} allocated, requests unknown', delivered_text, unit)
            -- Sums of seconds are exact to a millisecond, so a difference below half of one is 0.
            when observed_seconds - demand_seconds < 0.0005 then format(': {} of {} requested {} allocated', delivered_text, demanded_text, unit)
            else format(': {} {} allocated; {} requested (known for {:.4g} h)', delivered_text, unit, demanded_text, demand_seconds / 3600)
        end,
        '; guaranteed ' || guaranteed_text,
        if(borrowed > 0, '; borrowed ' || borrowed_text, ''),
        if(lent > 0, '; lent ' || lent_text, ''),
        if(capped_seconds > 0, format('; {:.4g} h at its limit', capped_seconds / 3600), ''),
        if(starved_seconds > 0, format('; {:.4g} h short of its guarantee', starved_seconds / 3600) || coalesce(' while ' || borrowers || ' borrowed', ''), '')
    ) as sentence
from (
    select
        *,
        -- Four digits, or all before the point: no exponent.
        format(
            if(columns('^(delivered|demanded|guaranteed|borrowed|lent)$') < 999.95, '{:.4g}', '{:,.0f}'),
            columns('^(delivered|demanded|guaranteed|borrowed|lent)$')
        ) as "\0_text"
    from day
) as day
left join behind
    using (cluster, system, quota, resource, flavor, day)
