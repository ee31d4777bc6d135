-- GPUs per hour: capacity, allocated, active and effective.
--
-- Time without data is not counted. Allocated time that is neither active nor idle has no activity signal. If all of it has none, both are
-- null. Active GPUs without a named pod have unknown allocation. Nodes without telemetry or labels count by requests, with unknown activity.
--
-- grain:  cluster, gpu_model, hour_start_at
-- reads:  facts.ledger_hour, facts.node_allocation, period.capacity, period.holder_day, period.unseen_allocation
-- params: since_at, until_at
-- source: facts.ledger_hour; missing labels: period.holder_day; without telemetry or labels: facts.node_allocation
-- columns: cluster, gpu_model, hour_start_at, usable_gpu_hours, allocated_gpu_hours, unnamed_gpu_hours, active_gpu_hours, effective_gpu_hours,
--          allocated_idle_gpu_hours
--   usable_gpu_hours     h with data in which the GPU was usable
with reported as (
    select
        columns('^(cluster|node_name|day)$'),
        bool_or(covers_unnamed) as covers_unnamed
    from period.unseen_allocation
    group by all
),

-- Nodes that are known only from requests.
silent as (
    select
        capacity.* similar to '^(cluster|node_name|day)$',
        max(capacity.gpu_model) as gpu_model,
        sum(capacity.device_count) as gpu_count
    from period.capacity as capacity
    inner join reported
        using (cluster, node_name, day)
    left join period.holder_day as holder_day
        using (cluster, device_uuid, day)
    group by all
    having bool_and(capacity.unseen_seconds = capacity.capacity_seconds or (reported.covers_unnamed and coalesce(holder_day.cause, '') != ''))
),

model as (
    select
        capacity.* similar to '^(cluster|device_uuid|day)$',
        max(capacity.gpu_model) as gpu_model,
        bool_or(silent.day is not null) as is_silent,
        max(coalesce(holder_day.cause, '')) as label_cause
    from period.capacity as capacity
    left join silent
        using (cluster, node_name, day)
    left join period.holder_day as holder_day
        using (cluster, device_uuid, day)
    group by all
),

step as (
    select
        ledger.*,
        coalesce(model.gpu_model, '') as gpu_model,
        ledger.pod != '' and not ledger.is_reserved as is_allocated,
        ledger.activity in ('effective', 'ineffective', 'busy') as is_active,
        ledger.outage = '' or ledger.pod != '' or is_active as is_usable,
        is_active or (is_usable and not ledger.is_reserved and coalesce(model.label_cause, '') != '') as needs_holder
    from facts.ledger_hour as ledger
    left join model
        on
            ledger.cluster = model.cluster
            and ledger.device_uuid = model.device_uuid
            and ledger.hour_start_at::date = model.day
    where
        is_in_period(ledger.hour_start_at, $since_at, $until_at)
        and ledger.activity != 'unseen'
        and not coalesce(model.is_silent, false)
),

requested as (
    select
        silent.*,
        node.state,
        unnest(generate_series(date_trunc('hour', node.start_at), node.end_at - interval 1 millisecond, interval 1 hour)) as hour_start_at,
        node.gpu_count * overlap_ms(
            greatest(node.start_at, $since_at::timestamp), least(node.end_at, $until_at::timestamp),
            hour_start_at, hour_start_at + interval 1 hour
        ) / 3600000 as gpu_hours
    from facts.node_allocation as node
    inner join silent
        using (cluster, node_name)
    where node.start_at::date = silent.day
),

-- A GPU with several resource names on a node counts as several units: the total is limited to the node's GPUs.
fitted as (
    select * replace (gpu_hours * least(1, gpu_count / sum(gpu_hours) over (partition by cluster, node_name, hour_start_at)) as gpu_hours)
    from requested
    where gpu_hours > 0
),

hour as (
    select
        columns('^(cluster|gpu_model|hour_start_at)$'),
        coalesce(sum(gpu_seconds) filter (where is_usable), 0) / 3600 as usable_gpu_hours,
        coalesce(sum(gpu_seconds) filter (where is_allocated), 0) / 3600 as allocated_gpu_hours,
        coalesce(sum(gpu_seconds) filter (where not is_allocated and needs_holder), 0) / 3600 as unnamed_gpu_hours,
        if(bool_and(activity = 'unreported') filter (where is_allocated), null, 0) as no_hours,
        coalesce(sum(gpu_seconds) filter (where is_allocated and is_active), no_hours) / 3600 as active_gpu_hours,
        if(
            bool_or(is_allocated and activity = 'busy') and not bool_or(is_allocated and activity in ('effective', 'ineffective')),
            null,
            coalesce(sum(gpu_seconds) filter (where is_allocated and activity = 'effective'), no_hours) / 3600
        ) as effective_gpu_hours,
        coalesce(sum(gpu_seconds) filter (where is_allocated and activity = 'inactive'), no_hours) / 3600 as allocated_idle_gpu_hours
    from step
    group by all
    union all by name
    select
        columns('^(cluster|gpu_model|hour_start_at)$'),
        coalesce(sum(gpu_hours) filter (where state in ('allocated', 'free')), 0) as usable_gpu_hours,
        coalesce(sum(gpu_hours) filter (where state = 'allocated'), 0) as allocated_gpu_hours,
        0 as unnamed_gpu_hours
    from fitted
    group by all
)

select
    columns('^(cluster|gpu_model|hour_start_at)$'),
    sum(columns('_gpu_hours$'))
from hour
group by all
