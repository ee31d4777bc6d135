-- Allocated and total GPUs of each model on each whole past day, computed over all days at once.
--
-- A day counts for trends if nearly all time of its GPUs has data and no activity for an unknown holder. The number of GPUs is that of the day, or of
-- the previous day if larger. A node without named holders all day comes from requests and placements where these are known. If no source names pods
-- or lists allocation all day, idle GPUs count as in period.holder_day: only if pods were named before and no GPU is active.
--
-- grain:  cluster, gpu_model, day
-- reads:  facts.device_day, facts.expected_device, facts.ledger_day, facts.node_allocation
-- params: unseen_ratio, until_at
-- source: facts.ledger_day, else facts.node_allocation
-- columns:
--   device_count      GPUs with data; of a node without telemetry, mean over known time
--   usable_gpu_hours  h of whole GPUs with data and available
with model as (
    select
        cluster,
        device_uuid,
        arg_max(gpu_model, last_hour_at) filter (where gpu_model != '') as gpu_model
    from facts.device_day
    group by cluster, device_uuid
),

place as (
    select
        columns('^(cluster|device_uuid|day)$'),
        max(node_name) as node_name
    from facts.device_day
    group by cluster, device_uuid, day
),

unlisted as (
    select
        gpu.* similar to '^(cluster|day)$',
        coalesce(bool_or(expected.is_named), false) and max(coalesce(gpu.active_seconds, 0) / nullif(gpu.observed_seconds, 0)) <= 0.01 as is_idle
    from facts.device_day as gpu
    left join facts.expected_device as expected
        using (cluster, device_uuid, day)
    where
        (gpu.cluster, gpu.day) not in (
            select (ledger.cluster, ledger.day)
            from facts.ledger_day as ledger
            where ledger.pod != ''
            union
            select (node.cluster, node.start_at::date)
            from facts.node_allocation as node
        )
    group by all
),

device_day as (
    select
        ledger.* similar to '^(cluster|device_uuid|day)$',
        coalesce(place.node_name, '') as node_name,
        coalesce(model.gpu_model, '') as gpu_model,
        bool_or(ledger.activity != 'unseen')::bigint as device_count,
        sum(ledger.gpu_seconds) filter (
            where ledger.activity != 'unseen' and (
                ledger.pod != '' or (ledger.activity = 'inactive' and coalesce(unlisted.is_idle, true))
                or (ledger.activity = 'unreported' and unlisted.day is null)
            )
        ) as known_seconds,
        sum(ledger.gpu_seconds) filter (where ledger.activity != 'unseen' and (ledger.outage = '' or ledger.pod != '')) as usable_seconds,
        sum(ledger.gpu_seconds) filter (where ledger.activity != 'unseen' and ledger.pod != '' and not ledger.is_reserved) as held_seconds
    from facts.ledger_day as ledger
    left join model
        using (cluster, device_uuid)
    left join place
        using (cluster, device_uuid, day)
    left join unlisted
        using (cluster, day)
    where ledger.day + interval 1 day <= $until_at
    group by all
),

requested as (
    select
        node.*,
        node.start_at::date as day,
        epoch_ms(node.end_at - node.start_at) / 1000 * node.gpu_count as gpu_seconds,
        epoch_ms(node.end_at - greatest(node.start_at, least(node.end_at, coalesce(max(node.end_at) over so_far, node.start_at)))) / 1000 as known_seconds
    from facts.node_allocation as node
    where
        node.start_at::date + interval 1 day <= $until_at
        and (node.cluster, node.node_name, node.start_at::date) not in (
            select (held.cluster, held.node_name, held.day)
            from device_day as held
            where held.held_seconds > 0
        )
    window so_far as (
        partition by node.cluster, node.node_name, node.start_at::date
        order by node.start_at, node.end_at
        rows between unbounded preceding and 1 preceding
    )
),

seen as (
    select
        columns('^(cluster|node_name|day)$'),
        count(*) as seen_count
    from device_day
    group by cluster, node_name, day
),

node_day as (
    select
        columns('^(cluster|node_name|day)$'),
        coalesce(max(requested.gpu_model), '') as gpu_model,
        -- A GPU with several resource names on a node counts as several units: the total is limited to the node's GPUs with data.
        sum(requested.gpu_seconds) / sum(requested.known_seconds) as unit_count,
        least(unit_count, max(seen.seen_count)) as device_count,
        device_count / unit_count * sum(requested.gpu_seconds) as known_seconds,
        device_count / unit_count * sum(requested.gpu_seconds) filter (where requested.state in ('allocated', 'free')) as usable_seconds,
        device_count / unit_count * sum(requested.gpu_seconds) filter (where requested.state = 'allocated' and requested.pod != '') as held_seconds
    from requested
    left join seen
        using (cluster, node_name, day)
    group by cluster, node_name, day
),

known as (
    select *
    from device_day
    anti join node_day
        using (cluster, node_name, day)
    union all by name
    select * exclude (unit_count)
    from node_day
),

-- A label has '-' where the driver's model name has a space.
spelled as (
    select
        *,
        min(gpu_model) over (partition by cluster, replace(gpu_model, ' ', '-')) as model
    from known
),

daily as (
    select
        cluster,
        model as gpu_model,
        day,
        coalesce(sum(device_count), 0) as device_count,
        -- Rounded, so that equal hours make equal days in any order of the sum.
        if(sum(known_seconds) > 0, round(coalesce(sum(held_seconds), 0) / 3600, 9), null) as allocated_gpu_hours,
        round(coalesce(sum(usable_seconds), 0) / 3600, 9) as usable_gpu_hours,
        coalesce(sum(known_seconds), 0) / 3600 as known_gpu_hours
    from spelled
    group by cluster, model, day
)

select
    * exclude (known_gpu_hours),
    allocated_gpu_hours is not null and known_gpu_hours >= (1 - $unseen_ratio) * 24 * greatest(device_count, coalesce(lag(device_count) over (
        partition by cluster, gpu_model
        order by day
    ), 0)) as is_counted
from daily
