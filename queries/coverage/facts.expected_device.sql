-- Devices and MIG instances expected on a day: those with data, and previous ones that are not known to be gone.
--
-- A device is gone when Kubernetes no longer lists its node, when other GPUs fill the node, or (a MIG instance) when its GPU has data without it.
-- Without Kubernetes data it stays expected. A known device is expected from midnight; a new one from its first sample, or from the time at which its
-- node listed accelerators, whichever is earlier. Both are expected until the day's end, or until the node is gone. Where one GPU replaces another
-- within the day, the change is at the first sample of the new one.
--
-- revision: 3
-- grain:  cluster, device_uuid, gpu_instance_id, day
-- reads:  facts.device_hour, facts.device_signal, facts.node_day, facts.ownership
-- params: expected_before, since_at
-- source: first and last samples by facts.device_signal; nodes by facts.node_day; this table of the last day before that has facts
-- columns: cluster, device_uuid, gpu_instance_id, node_name, gpu_model, driver_version, last_seen_at, due_from_at, day, due_until_at, is_gone, silent_hours,
--          is_named
--   last_seen_at  UTC, last sample
--   is_named      whether its cluster has had pod names so far
with known as (
    select unnest(
        from_json(
            $expected_before::json,
            '[{"cluster": "VARCHAR", "device_uuid": "VARCHAR", "gpu_instance_id": "VARCHAR", "node_name": "VARCHAR",'
            || ' "gpu_model": "VARCHAR", "driver_version": "VARCHAR", "last_seen_at": "TIMESTAMP", "is_named": "BOOLEAN"}]'
        ),
        recursive := true
    )
),

hourly as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        min(hour_start_at) as first_hour_at,
        max(hour_start_at) as last_hour_at,
        list(hour(hour_start_at)) filter (where observed_seconds >= 1800) as seen_hours,
        arg_max(nullif(columns('^(node_name|gpu_model|driver_version)$'), ''), hour_start_at) as "\0"
    from facts.device_hour
    group by all
),

reported as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        min(start_at) as start_at,
        max(end_at) as end_at,
        max(nullif(node_name, '')) as node_name
    from facts.device_signal
    group by all
),

named as (
    select cluster
    from known
    where is_named
    union by name
    select cluster
    from facts.ownership
),

-- Properties of a device stay known while it has no data.
due as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        $since_at::timestamp as day_at,
        coalesce(hourly.node_name, reported.node_name, known.node_name, '') as node_name,
        coalesce(hourly.gpu_model, known.gpu_model, '') as gpu_model,
        coalesce(hourly.driver_version, known.driver_version, '') as driver_version,
        coalesce(hourly.seen_hours, []) as seen_hours,
        known.cluster is not null as is_known,
        coalesce(reported.start_at, hourly.first_hour_at) as first_at,
        coalesce(reported.end_at, hourly.last_hour_at + interval 1 hour) as last_at,
        coalesce(last_at, known.last_seen_at) as last_seen_at
    from hourly
    full join reported
        using (cluster, device_uuid, gpu_instance_id)
    full join known
        using (cluster, device_uuid, gpu_instance_id)
),

-- The GPU itself, from any of its rows.
board as (
    select
        columns('^(cluster|device_uuid)$'),
        min(first_at) as first_at,
        max(columns('^(node_name|last_at|last_seen_at)$'))
    from due
    group by all
),

host as (
    select
        columns('^(cluster|node_name)$'),
        list(first_at order by first_at) as first_ats,
        list(last_at order by last_at) as last_ats
    from board
    where first_at is not null
    group by all
),

-- A node's state may have several rows, one for each part that was read.
node as (
    select
        columns('^(cluster|node_name)$'),
        min(start_at) as start_at,
        max(columns('^(end_at|accelerator_count)$')),
        coalesce(max(device_count), nullif(max(accelerator_count), 0)) as device_count
    from facts.node_day
    group by all
),

-- Until when Kubernetes had data: without data of Kubernetes, no node counts as removed.
listing as (
    select
        cluster,
        max(end_at) as end_at
    from node
    group by all
),

bounded as (
    select
        due.*,
        -- In a node of n GPUs, GPU n + 1 replaces the first GPU that lost its data.
        list_position(host.first_ats, board.first_at) - node.device_count as newcomer_number,
        host.first_ats[node.device_count + list_position(host.last_ats, board.last_at)] as successor_at,
        case
            when due.is_known then due.day_at
            when newcomer_number > 0 and host.last_ats[newcomer_number] <= board.first_at then due.first_at
            when node.accelerator_count > 0 then least(due.first_at, node.start_at)
            else due.first_at
        end as due_from_at,
        case
            when due.gpu_instance_id != '' and due.last_seen_at + interval 10 minute < board.last_seen_at
                then coalesce(due.last_at, due.day_at)
            when node.end_at + interval 10 minute < listing.end_at then greatest(due.last_at, node.end_at)
            when board.last_at is null and node.node_name is null and listing.cluster is not null then due.day_at
            when board.last_at is null and len(host.last_ats) >= node.device_count then due.day_at
            when board.last_at <= successor_at then successor_at
        end as gone_at
    from due
    left join host
        using (cluster, node_name)
    left join node
        using (cluster, node_name)
    inner join board
        using (cluster, device_uuid)
    left join listing
        using (cluster)
)

select
    * exclude (day_at, seen_hours, is_known, first_at, last_at, newcomer_number, successor_at, gone_at),
    day_at::date as day,
    coalesce(gone_at, day_at + interval 1 day) as due_until_at,
    gone_at is not null as is_gone,
    list_filter(
        generate_series(0, 23),
        lambda number: not list_contains(seen_hours, number)
        and day_at + to_hours(number) >= due_from_at
        and day_at + to_hours(number + 1) <= coalesce(gone_at, day_at + interval 1 day)
    ) as silent_hours,
    cluster in (from named) as is_named
from bounded
where due_from_at < coalesce(gone_at, day_at + interval 1 day)
