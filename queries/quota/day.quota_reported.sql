-- Use, demand and fair share that the systems report: their series at the time, else the status of their objects.
--
-- Kueue reports pending and reserved amounts; together they are the demand. A status is valid until the next snapshot of its object.
--
-- grain:  cluster, system, quota, resource, flavor, field, start_at
-- reads:  day.quota_flavor, day.quota_series, day.state_snapshot, lake.quota_term
-- source: Kueue, Koordinator, Volcano and KAI metrics; kube_resourcequota; status of quota objects, annotations of Koordinator's
-- columns:
--   field          delivered, demanded, pending or fair_share
--   amount_native  amount in the resource's own unit
--   source         series or status
with status as (
    select
        term.cluster,
        columns('^(system|quota|resource|flavor)$'),
        unnest([
            { 'field': 'delivered', 'amount_native': delivered },
            { 'field': 'demanded', 'amount_native': demanded },
            { 'field': 'fair_share', 'amount_native': fair_share }
        ], recursive := true),
        snapshot.observed_at as start_at,
        snapshot.stands_until_at as end_at
    from lake.quota_term as term
    inner join day.state_snapshot as snapshot
        using (cluster, kind, observed_at)
    where term.quota != ''
    qualify row_number() over (
        partition by term.cluster, system, quota, resource, flavor, term.observed_at
        order by term.kind, term.uid
    ) = 1
),

-- Kueue reports pending requests by resource, not by flavor: the flavor is known where there is only one.
only_flavor as (
    select
        columns('^(cluster|quota|resource)$'),
        min(flavor) as flavor
    from day.quota_flavor
    group by all
    having count(*) = 1
),

series as (
    select series.* replace (coalesce(nullif(series.flavor, ''), only_flavor.flavor, '') as flavor)
    from day.quota_series as series
    left join only_flavor
        on
            series.cluster = only_flavor.cluster
            and series.system = 'kueue'
            and series.field = 'pending'
            and series.quota = only_flavor.quota
            and series.resource = only_flavor.resource
    where series.field in ('delivered', 'demanded', 'pending', 'fair_share')
)

select
    * exclude (parent, is_parent, tree),
    'series' as source
from series
union all by name
select
    status.*,
    'status' as source
from status
-- Times in which a system has series of a field, for any quota.
anti join merged_runs(series, '^(cluster|system|field)$') as covered
    on
        status.cluster = covered.cluster
        and status.system = covered.system
        and status.field = covered.field
        and status.start_at < covered.end_at
        and status.end_at > covered.start_at
where status.amount_native is not null
