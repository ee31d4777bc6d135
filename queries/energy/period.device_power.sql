-- Energy of each GPU by use (idle, attributed, unattributed), added over the window.
--
-- grain:  cluster, device_uuid
-- reads:  facts.device_power_day, facts.device_signal
-- params: since_at, until_at
-- source: facts.device_power_hour
with corrected as (
    select
        columns('^(cluster|device_uuid)$'),
        sum(list_sum([
            coalesce(dropped[reason], 0) for reason in ['implausible', 'outlier', 'beyond_bound', 'backward_step', 'stuck']
        ])) as corrected_sample_count
    from facts.device_signal
    where signal in ('energy_joules', 'power_watts') and start_at < $until_at and end_at >= $since_at
    group by all
)

select
    columns('^(cluster|device_uuid)$'),
    sum(measured_joules) as measured_joules,
    case
        when sum(measured_joules) is null then 'none'
        when sum(measured_seconds) is null then 'counter'
        when sum(counter_seconds) is null then 'unknown'
        when sum(counter_seconds) > sum(measured_seconds) - 1e-6 then 'counter'
        when sum(counter_seconds) > 0 then 'mixed'
        else 'integral'
    end as energy_method,
    sum(measured_seconds) is null and sum(integral_joules) is not null as is_implausible,
    coalesce(any_value(corrected.corrected_sample_count), if(coalesce(sum(measured_joules), sum(integral_joules)) is null, null, 0))::bigint as corrected_sample_count,
    if(count(corrected_joules) = count(measured_joules), sum(corrected_joules), null) as corrected_joules,
    sum(columns('^(counter|integral)_joules$')),
    sum(idle_joules) as known_idle_joules,
    if(sum(idle_known_count) = sum(measured_known_count), known_idle_joules, null) as idle_joules,
    sum(columns('^(attributed_joules|unattributed_joules|closing_error_joules)$'))
from facts.device_power_day
left join corrected
    using (cluster, device_uuid)
group by cluster, device_uuid
