-- Expected and observed time of each device, MIG instances among them, per day of the window.
--
-- On a day with facts of the cluster, facts.expected_device lists the expected devices. On a later day without facts, the devices expected at the end
-- of the last day with facts are expected all day. Before the first day with facts, its observed devices are expected. So time without export is
-- unknown, not zero capacity. A retired device is expected only while it has data. In an hour that the window cuts, the observed time is expected, so
-- that expected is never less than observed.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day
-- reads:  facts.device_day, facts.expected_device, facts.node_day
-- params: retired, since_at, until_at
-- source: facts.expected_device; facts.device_hour
-- columns:
--   last_seen_at      UTC, its last sample; null without a sample up to this day
--   unknown_seconds   s in which it was expected and had no data
with hourly as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day)$'),
        sum(observed_seconds) as observed_seconds,
        min(first_hour_at) as first_hour_at,
        max(last_hour_at) as last_hour_at,
        arg_max(columns('^(node_name|gpu_model|driver_version)$'), last_hour_at) as "\0"
    from facts.device_day
    group by all
),

-- Facts of older versions have no expected devices: there, devices with data are the expected ones.
due as (
    from facts.expected_device
    union all by name
    select
        hourly.* exclude (observed_seconds),
        last_hour_at + interval 1 hour as last_seen_at,
        first_hour_at as due_from_at,
        day + interval 1 day as due_until_at,
        false as is_gone,
        [] as silent_hours
    from hourly
    anti join facts.expected_device
        using (cluster, day)
),

known as (
    select
        cluster,
        day
    from due
    union by name
    select
        cluster,
        day
    from facts.node_day
),

requested as (
    select
        cluster,
        min(day) as first_day,
        unnest(generate_series(
            $since_at::date::timestamp, ($until_at - interval 1 millisecond)::date::timestamp, interval 1 day
        ))::date as day
    from known
    group by cluster
),

reported as (
    select
        requested.*,
        coalesce(known.day, requested.first_day) as known_day
    from requested
    asof left join known
        using (cluster, day)
),

filled as (
    select
        due.* exclude (day, due_from_at, due_until_at),
        reported.day,
        reported.known_day,
        if(reported.day = reported.known_day, due.due_from_at, reported.day::timestamp) as from_at,
        if(reported.day = reported.known_day, due.due_until_at, reported.day + interval 1 day) as to_at
    from reported
    inner join due
        using (cluster)
    where reported.known_day = due.day and (reported.known_day >= reported.day or not due.is_gone)
),

measured as (
    select
        filled.*,
        round(coalesce(hourly.observed_seconds, 0), 3) as seen_seconds,
        round(greatest(
            0, overlap_ms(filled.from_at, filled.to_at, $since_at::timestamp, $until_at::timestamp) / 1000 - coalesce(hourly.observed_seconds, 0)
        ), 3) as unseen_seconds
    from filled
    left join hourly
        using (cluster, device_uuid, gpu_instance_id, day)
),

retired as (
    select unnest(
        from_json($retired::json, '[{"cluster": "VARCHAR", "node": "VARCHAR", "device": "VARCHAR", "since": "DATE"}]'),
        recursive := true
    )
)

select
    measured.* similar to '^(cluster|device_uuid|gpu_instance_id|day|known_day|node_name|gpu_model|driver_version)$',
    bool_or(measured.gpu_instance_id != '') over (partition by measured.cluster, measured.device_uuid, measured.day) as has_instances,
    if(measured.known_day > measured.day, null, measured.last_seen_at) as last_seen_at,
    if(measured.known_day = measured.day, measured.silent_hours, []) as silent_hours,
    round(measured.seen_seconds + measured.unseen_seconds, 3) as expected_seconds,
    measured.seen_seconds as observed_seconds,
    measured.unseen_seconds as unknown_seconds
from measured
anti join retired
    on
        measured.day >= retired.since
        and measured.seen_seconds = 0
        and retired.cluster in ('', measured.cluster)
        and retired.node in ('', measured.node_name)
        and retired.device in ('', measured.device_uuid)
where measured.seen_seconds + measured.unseen_seconds > 0
