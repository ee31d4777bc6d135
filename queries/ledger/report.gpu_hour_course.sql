-- GPUs per hour: capacity, allocated, active and effective.
--
-- Time without data has no hour here; report.gpu_hour_balance has it by day. Active and allocated_idle are parts of held,
-- effective is a part of active; what of held is neither has no signal. The allocation is unknown where the GPU was active and no
-- pod is named, or where labels are missing.
--
-- grain:  cluster, gpu_model, hour_start_at
-- reads:  facts.ledger_hour, period.capacity, period.holder_day
-- params: since_at, until_at
-- source: facts.ledger_hour; missing labels: period.holder_day
-- columns: cluster, gpu_model, hour_start_at, usable_gpu_hours, allocated_gpu_hours, unnamed_gpu_hours, active_gpu_hours, effective_gpu_hours,
--          allocated_idle_gpu_hours
--   usable_gpu_hours     h seen in which the GPU could be used
with model as (
    select
        columns('^(cluster|device_uuid|day)$'),
        max(gpu_model) as gpu_model
    from period.capacity
    group by all
),

step as (
    select
        ledger.*,
        coalesce(model.gpu_model, '') as gpu_model,
        ledger.pod != '' and not ledger.is_reserved as is_held,
        ledger.activity in ('effective', 'ineffective', 'busy')
        or (not ledger.is_reserved and coalesce(holder_day.cause, '') != '') as needs_holder
    from facts.ledger_hour as ledger
    left join model
        on
            ledger.cluster = model.cluster
            and ledger.device_uuid = model.device_uuid
            and ledger.hour_start_at::date = model.day
    left join period.holder_day as holder_day
        on
            ledger.cluster = holder_day.cluster
            and ledger.device_uuid = holder_day.device_uuid
            and ledger.hour_start_at::date = holder_day.day
    where
        is_in_period(ledger.hour_start_at, $since_at, $until_at)
        and (ledger.outage = '' or ledger.pod != '' or ledger.activity in ('effective', 'ineffective', 'busy'))
        and ledger.activity != 'unseen'
)

select
    cluster,
    gpu_model,
    hour_start_at,
    sum(gpu_seconds) / 3600 as usable_gpu_hours,
    coalesce(sum(gpu_seconds) filter (where is_held), 0) / 3600 as allocated_gpu_hours,
    coalesce(sum(gpu_seconds) filter (where not is_held and needs_holder), 0) / 3600 as unnamed_gpu_hours,
    coalesce(
        sum(gpu_seconds) filter (where is_held and activity in ('effective', 'ineffective', 'busy')), 0
    ) / 3600 as active_gpu_hours,
    if(
        bool_or(is_held and activity = 'busy') and not bool_or(is_held and activity in ('effective', 'ineffective')),
        null,
        coalesce(sum(gpu_seconds) filter (where is_held and activity = 'effective'), 0) / 3600
    ) as effective_gpu_hours,
    coalesce(sum(gpu_seconds) filter (where is_held and activity = 'inactive'), 0) / 3600 as allocated_idle_gpu_hours
from step
group by all
