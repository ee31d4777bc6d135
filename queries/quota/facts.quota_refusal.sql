-- Pods that a ResourceQuota refused, by controller: at least one pod, from the first to the last known refusal.
--
-- revision: 3
-- grain:  cluster, quota, resource, owner_kind, owner_name, start_at
-- reads:  day.quota_unit, day.quota_watch, lake.quota
-- source: Events FailedCreate, "exceeded quota: …, requested: …, used: …"
-- columns: cluster, quota, resource, owner_kind, owner_name, refused_gpus, start_at, end_at
with refusal as (
    select
        cluster,
        namespace || '/' || regexp_extract(spec ->> '$.message', 'exceeded quota: ([^ ,]+)', 1) as quota,
        coalesce(spec ->> '$.involvedObject.kind', '') as owner_kind,
        coalesce(spec ->> '$.involvedObject.name', '') as owner_name,
        unnest(string_split(regexp_extract(spec ->> '$.message', 'requested: (.*?), used: ', 1), ',')) as requested,
        created_at::timestamp as first_at,
        -- Creators of events may write any time into them, and write them before the API server: its time and the snapshot's limit it.
        greatest(first_at, least(coalesce(try_cast(spec ->> '$.lastTimestamp' as timestamp), first_at), observed_at::timestamp)) as last_at
    from lake.quota
    where kind = 'events'
),

run as (
    select
        refusal.* similar to '^(cluster|quota|owner_kind|owner_name)$',
        unit.resource,
        max(try_cast(replace(split_part(refusal.requested, '=', 2), 'k', '000') as integer) * unit.gpus_per_native) as refused_gpus,
        min(refusal.first_at) as first_at,
        max(refusal.last_at) as last_at
    from refusal
    inner join day.quota_unit as unit
        on split_part(refusal.requested, '=', 1) = unit.resource and unit.system = 'kubernetes'
    group by all
    having refused_gpus > 0
),

daily as (
    select
        *,
        unnest(generate_series(date_trunc('day', first_at), last_at, interval 1 day)) as day
    from run
)

select
    daily.* exclude (first_at, last_at, day),
    greatest(daily.first_at, daily.day) as start_at,
    least(daily.last_at, daily.day + interval 1 day) as end_at
from daily
semi join day.quota_watch as watch
    on daily.cluster = watch.cluster and watch.watched = 'pods' and daily.day < watch.end_at and daily.day + interval 1 day > watch.start_at
