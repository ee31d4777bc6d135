-- Times of changes of the quotas of a system and resource, with no change between two of them.
--
-- A change is: creation, binding or end of a pod; other terms of a quota, or other known times; another allocatable amount of nodes; other free
-- devices for waiting requests; the start of an hour.
--
-- grain:  cluster, system, resource, flavor, scope, start_at
-- reads:  day.quota_request, day.quota_capacity, day.quota_free, day.quota_reported, day.quota_scope, day.quota_terms, day.quota_watch
-- source: clean.quota_*, day.quota_request, day.quota_capacity, day.quota_free
-- columns:
--   scope     scope of day.quota_scope
with subject as (
    select distinct * exclude (quota)
    from day.quota_scope
),

requested as (
    select
        request.*,
        known.scope
    from day.quota_request as request
    inner join day.quota_scope as known
        using (cluster, system, resource, flavor, quota)
),

-- Pending requests of one size, from the first to the last.
waited as (
    select
        columns('^(cluster|system|resource|flavor|scope|part)$'),
        round(pod_gpus, 6) as request_gpus,
        min(created_at) as start_at,
        max(coalesce(bound_at, ended_at, 'infinity'::timestamp)) as end_at
    from requested
    where bound_at is null or bound_at > created_at
    group by all
),

reported as (
    select
        subject.*,
        watch.start_at,
        watch.end_at
    from subject
    inner join day.quota_watch as watch
        using (cluster)
    union by name
    select
        known.* exclude (quota),
        report.start_at,
        report.end_at
    from day.quota_reported as report
    inner join day.quota_scope as known
        using (cluster, system, resource, flavor, quota)
),

step as (
    from reported
    union by name
    select
        known.* exclude (quota),
        term.start_at,
        term.end_at
    from day.quota_terms as term
    inner join day.quota_scope as known
        using (cluster, system, resource, flavor, quota)
    union by name
    select
        subject.*,
        capacity.start_at,
        capacity.end_at
    from subject
    inner join day.quota_capacity as capacity
        using (cluster, system, resource)
)

select
    * exclude (start_at, end_at),
    unnest([start_at, end_at]) as start_at
from step
union by name
select
    * exclude (start_at, end_at),
    unnest(generate_series(date_trunc('hour', start_at), end_at, interval 1 hour)) as start_at
from reported
union by name
select
    columns('^(cluster|system|resource|flavor|scope)$'),
    unnest(list_filter([created_at, bound_at, ended_at], lambda instant: instant is not null)) as start_at
from requested
union by name
select
    waited.* exclude (part, request_gpus, start_at, end_at),
    free.start_at
from waited
inner join day.quota_free as free
    using (cluster, system, resource, flavor, part, request_gpus)
where free.start_at > waited.start_at and free.start_at < waited.end_at
