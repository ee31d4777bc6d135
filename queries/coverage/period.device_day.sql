-- Expected and observed time of each device, MIG instances among them, per day of the window.
--
-- Expected, and never claimed beyond what there is evidence for: on every day from the first on which it was seen to the last,
-- and on the day after, unless kube-state-metrics no longer lists its node then. On its first day from its first sample on,
-- or from when its node listed accelerators, whichever is earlier; on its last until the day's end, or until its node was no
-- longer listed. The day before the window counts as evidence where the lake holds it. A MIG instance that goes while its GPU
-- is still seen was removed: it is expected until its last sample. Time that was expected and not seen is unknown.
-- An hour that the window cuts counts with what was seen in it, so that expected is never less than observed.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day
-- reads:  facts.device_day, facts.device_signal, facts.node_day
-- params: since_at, until_at
-- source: facts.device_hour; first and last samples by facts.device_signal; nodes by facts.node_day
-- columns: cluster, device_uuid, gpu_instance_id, day, node_name, gpu_model, driver_version, has_instances, last_seen_at, expected_seconds,
--          observed_seconds, unknown_seconds
--   has_instances     whether the GPU is cut into MIG instances on that day
--   last_seen_at      UTC, its last sample of the day; null where it was not seen
--   expected_seconds  s, observed and unknown together
--   observed_seconds  s in which it was seen
--   unknown_seconds   s in which it was expected and not seen
with hourly as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        sum(observed_seconds) as observed_seconds,
        min(first_hour_at) as first_hour_at,
        max(last_hour_at) as last_hour_at,
        arg_max(node_name, last_hour_at) as node_name,
        arg_max(gpu_model, last_hour_at) as gpu_model,
        arg_max(driver_version, last_hour_at) as driver_version
    from facts.device_day
    group by all
),

told as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        min(start_at) as start_at,
        max(end_at) as end_at,
        max(node_name) as node_name
    from facts.device_signal
    where day + interval 2 day > $since_at and day < $until_at
    group by all
),

present as (
    select
        coalesce(hourly.cluster, told.cluster) as cluster,
        coalesce(hourly.device_uuid, told.device_uuid) as device_uuid,
        coalesce(hourly.gpu_instance_id, told.gpu_instance_id) as gpu_instance_id,
        coalesce(hourly.day, told.day) as day,
        coalesce(nullif(hourly.node_name, ''), told.node_name, '') as node_name,
        coalesce(hourly.gpu_model, '') as gpu_model,
        coalesce(hourly.driver_version, '') as driver_version,
        coalesce(hourly.observed_seconds, 0) as observed_seconds,
        coalesce(told.start_at, hourly.first_hour_at) as first_at,
        coalesce(told.end_at, hourly.last_hour_at + interval 1 hour) as last_at
    from hourly
    full join told
        using (cluster, device_uuid, gpu_instance_id, day)
),

-- Every day from the first to the one after the last.
due as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        min(day) as first_day,
        max(day) as last_day,
        unnest(generate_series(min(day)::timestamp, max(day)::timestamp + interval 1 day, interval 1 day))::date as day
    from present
    group by cluster, device_uuid, gpu_instance_id
),

-- What is known of a device stays known on days on which it is silent.
filled as (
    select
        due.*,
        present.first_at,
        present.last_at,
        present.day is not null as is_present,
        coalesce(present.observed_seconds, 0) as observed_seconds,
        last_value(nullif(present.node_name, '') ignore nulls) over earlier as node_name,
        last_value(nullif(present.gpu_model, '') ignore nulls) over earlier as gpu_model,
        last_value(nullif(present.driver_version, '') ignore nulls) over earlier as driver_version,
        last_value(present.last_at ignore nulls) over earlier as latest_at,
        -- The GPU itself, by any of its rows.
        max(present.last_at) over (
            partition by due.cluster, due.device_uuid
            order by due.day
            range between unbounded preceding and current row
        ) as board_latest_at
    from due
    left join present
        using (cluster, device_uuid, gpu_instance_id, day)
    window earlier as (
        partition by due.cluster, due.device_uuid, due.gpu_instance_id
        order by due.day
        rows between unbounded preceding and current row
    )
),

node as (
    select
        cluster,
        node_name,
        day,
        min(start_at) as start_at,
        max(end_at) as end_at,
        max(accelerator_count) as accelerator_count
    from facts.node_day
    group by all
),

-- Until when kube-state-metrics itself spoke: when it falls silent, no node has left.
listing as (
    select
        cluster,
        day,
        max(end_at) as end_at
    from node
    group by all
),

bounded as (
    select
        filled.*,
        -- From the day's start where it was there before; else from its first sign.
        case
            when filled.day > filled.first_day then filled.day::timestamp
            when node.accelerator_count > 0 then least(filled.first_at, node.start_at)
            else filled.first_at
        end as from_at,
        case
            when filled.gpu_instance_id != '' and filled.latest_at + interval 10 minute < filled.board_latest_at
                then coalesce(filled.last_at, filled.day::timestamp)
            when node.end_at + interval 10 minute < listing.end_at
                then greatest(filled.last_at, node.end_at)
            when node.node_name is null and not filled.is_present and listing.day is not null then filled.day::timestamp
            else filled.day::timestamp + interval 1 day
        end as to_at
    from filled
    left join node
        using (cluster, node_name, day)
    left join listing
        using (cluster, day)
),

measured as (
    select
        *,
        round(observed_seconds, 3) as seen_seconds,
        round(greatest(
            0,
            epoch_ms(least(to_at, $until_at::timestamp)) / 1000 - epoch_ms(greatest(from_at, $since_at::timestamp)) / 1000
            - observed_seconds
        ), 3) as unseen_seconds
    from bounded
    where day < $until_at and day + interval 1 day > $since_at
)

select
    cluster,
    device_uuid,
    gpu_instance_id,
    day,
    coalesce(node_name, '') as node_name,
    coalesce(gpu_model, '') as gpu_model,
    coalesce(driver_version, '') as driver_version,
    bool_or(gpu_instance_id != '') over (partition by cluster, device_uuid, day) as has_instances,
    last_at as last_seen_at,
    round(seen_seconds + unseen_seconds, 3) as expected_seconds,
    seen_seconds as observed_seconds,
    unseen_seconds as unknown_seconds
from measured
where seen_seconds + unseen_seconds > 0
