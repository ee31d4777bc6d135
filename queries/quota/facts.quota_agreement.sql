-- Use that ResourceQuotas report in a snapshot beside requests of pods and claims: one row in total, and one for each difference.
--
-- revision: 4
-- grain:  cluster, compared, object, resource, observed_at
-- reads:  day.quota_amount, day.state_snapshot, lake.quota_term
-- source: ResourceQuota status.used; day.quota_amount
-- columns: cluster, compared, object, resource, observed_at, hour_start_at, compared_count, differing_count, reported_units, counted_units
with beside as (
    select
        columns('^(cluster|resource)$'),
        'quota use' as compared,
        quota as object,
        term.observed_at::timestamp as observed_at,
        term.delivered as reported_units,
        amount.demanded_native as counted_units
    from lake.quota_term as term
    inner join day.quota_amount as amount
        using (cluster, system, quota, resource, flavor)
    semi join day.state_snapshot as snapshot
        on term.cluster = snapshot.cluster and term.observed_at = snapshot.observed_at and snapshot.kind = 'pods'
    where
        term.system = 'kubernetes'
        and term.delivered is not null
        and amount.amount_source = 'pods'
        and amount.start_at <= term.observed_at
        and amount.end_at > term.observed_at
)

select *
from agreement(beside)
