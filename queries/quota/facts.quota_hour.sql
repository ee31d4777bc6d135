-- Outcome of each quota per hour: exact integrals of its steps, which add up over hours.
--
-- Each integral is in the resource's unit times hours; times gpus_per_native it is GPU-hours. An integral that is known for a part of the hour covers
-- only this part; its seconds have a column.
--
-- revision: 25
-- grain:  cluster, system, resource, flavor, quota, hour_start_at
-- reads:  day.quota_step
-- columns: cluster, system, resource, flavor, quota, hour_start_at, pool, parent, is_parent, gpus_per_native, native_unit,
--          observed_seconds, guaranteed_seconds, demand_seconds, share_seconds, own_seconds, lent_seconds, unmet_seconds,
--          violated_known_seconds, cap_known_seconds, capped_seconds, starved_seconds, violated_seconds, guaranteed_native_hours,
--          cap_native_hours, demanded_native_hours, delivered_native_hours, borrowed_native_hours, lent_native_hours,
--          fair_share_native_hours, entitled_native_hours, over_entitlement_native_hours, unmet_native_hours, violated_native_hours,
--          honourable_native_hours, honoured_native_hours, share_reason, share_source, amount_source, inferred_seconds
--   pool                           quotas of one pool lend to each other
--   parent                         quota that contains it at the end of the hour; '' for none
--   observed_seconds               s in which its terms and its allocated amount are known
--   share_reason                   reason of an unknown fair share in the hour; '' for none
with step as (
    select
        *,
        epoch_ms(end_at - start_at) / 1000 as seconds,
        seconds / 3600 as hours,
        least(guaranteed_native, demanded_native) as honourable_native
    from day.quota_step
)

select
    columns('^(cluster|system|resource|flavor|quota)$'),
    date_trunc('hour', start_at) as hour_start_at,
    arg_max(pool, start_at) as pool,
    arg_max(parent, start_at) as parent,
    bool_or(is_parent) as is_parent,
    any_value(gpus_per_native) as gpus_per_native,
    any_value(native_unit) as native_unit,
    sum(seconds)::double as observed_seconds,
    coalesce(sum(seconds) filter (where guaranteed_native < 1e999), 0)::double as guaranteed_seconds,
    coalesce(sum(seconds) filter (where demanded_native is not null), 0)::double as demand_seconds,
    coalesce(sum(seconds) filter (where fair_share_native is not null), 0)::double as share_seconds,
    coalesce(sum(seconds) filter (where borrowed_native is not null), 0)::double as own_seconds,
    coalesce(sum(seconds) filter (where lent_native is not null), 0)::double as lent_seconds,
    coalesce(sum(seconds) filter (where unmet_native is not null), 0)::double as unmet_seconds,
    coalesce(sum(seconds) filter (where violated_native is not null), 0)::double as violated_known_seconds,
    coalesce(sum(seconds) filter (where is_capped is not null), 0)::double as cap_known_seconds,
    coalesce(sum(seconds) filter (where is_capped), 0)::double as capped_seconds,
    coalesce(sum(seconds) filter (where unmet_native > 0), 0)::double as starved_seconds,
    coalesce(sum(seconds) filter (where violated_native > 0), 0)::double as violated_seconds,
    sum(guaranteed_native * hours) filter (where guaranteed_native < 1e999) as guaranteed_native_hours,
    sum(columns('^(cap|demanded|delivered|borrowed|lent|fair_share|entitled|over_entitlement|unmet|violated)_native$') * hours) as '\1_native_hours',
    sum(honourable_native * hours) filter (where unmet_native is not null) as honourable_native_hours,
    sum(least(honourable_native, delivered_native) * hours) filter (where unmet_native is not null) as honoured_native_hours,
    max(share_reason) as share_reason,
    if(min(nullif(share_source, '')) = max(share_source), max(share_source), if(max(share_source) = '', '', 'both')) as share_source,
    arg_max(amount_source, start_at) as amount_source,
    coalesce(sum(seconds) filter (where certainty = 'inferred'), 0)::double as inferred_seconds
from step
group by cluster, system, resource, flavor, quota, date_trunc('hour', start_at)
