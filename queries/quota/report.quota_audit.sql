-- Fairness audit: use and fair share of each quota as its scheduler reports them, beside recomputed values.
--
-- Values are means over the time in which both are known, in the resource's own unit.
--
-- grain:  cluster, scheduler, quota, resource, flavor, measure
-- reads:  facts.quota_audit_hour
-- params: since_at, until_at
-- columns: those of facts.quota_audit_hour without system, hour_start_at, gpus_per_native, reported_native_hours, recomputed_native_hours;
--          scheduler, reported_native_avg, recomputed_native_avg, difference_native_avg
select
    cluster,
    system as scheduler,
    columns('^(quota|resource|flavor|measure)$'),
    any_value(native_unit) as native_unit,
    sum(observed_seconds)::double as observed_seconds,
    sum(reported_native_hours) * 3600 / sum(observed_seconds) as reported_native_avg,
    sum(recomputed_native_hours) * 3600 / sum(observed_seconds) as recomputed_native_avg,
    recomputed_native_avg - reported_native_avg as difference_native_avg
from facts.quota_audit_hour
where is_in_period(hour_start_at, $since_at, $until_at)
group by cluster, system, quota, resource, flavor, measure
order by all
