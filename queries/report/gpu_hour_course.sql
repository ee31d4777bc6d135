-- Supply and use hour by hour: what there was of the GPUs, and how much of it was held, active and effective.
--
-- Of what was seen and could be used: time that was not seen has no hour, and stands in report.gpu_hour_balance by day. Active and
-- allocated_idle are parts of held, effective is a part of active, by the conditions of the ledger; what of held is neither active nor
-- idle has no signal that tells.
--
-- grain:  cluster, gpu_model, hour_start_at
-- reads:  facts.ledger_hour, facts.window_capacity
-- params: since_at, until_at
-- source: facts.ledger_hour
-- columns:
--   cluster                   cluster name
--   gpu_model                 model, '' where unknown
--   hour_start_at             UTC, start of the hour
--   usable_gpu_hours          h seen in which the GPU could be used
--   held_gpu_hours            h of these held by a container
--   active_gpu_hours          h held and active
--   effective_gpu_hours       h held and active with SM activity of 0.5 or more; null where none of the active time has SM activity
--   allocated_idle_gpu_hours  h held and not active
with model as (
    select
        cluster,
        device_uuid,
        day,
        max(gpu_model) as gpu_model
    from facts.window_capacity
    group by all
),

span as (
    select
        ledger.cluster,
        coalesce(model.gpu_model, '') as gpu_model,
        ledger.hour_start_at,
        ledger.pod != '' and not ledger.is_reserved as is_held,
        ledger.activity,
        ledger.gpu_seconds
    from facts.ledger_hour as ledger
    left join model
        on
            ledger.cluster = model.cluster
            and ledger.device_uuid = model.device_uuid
            and ledger.hour_start_at::date = model.day
    where
        ledger.hour_start_at < $until_at
        and ledger.hour_start_at + interval 1 hour > $since_at
        and ledger.outage = ''
        and ledger.activity != 'unseen'
)

select
    cluster,
    gpu_model,
    hour_start_at,
    sum(gpu_seconds) / 3600 as usable_gpu_hours,
    coalesce(sum(gpu_seconds) filter (where is_held), 0) / 3600 as held_gpu_hours,
    coalesce(
        sum(gpu_seconds) filter (where is_held and activity in ('effective', 'ineffective', 'busy')), 0
    ) / 3600 as active_gpu_hours,
    if(
        bool_or(is_held and activity = 'busy') and not bool_or(is_held and activity in ('effective', 'ineffective')),
        null,
        coalesce(sum(gpu_seconds) filter (where is_held and activity = 'effective'), 0) / 3600
    ) as effective_gpu_hours,
    coalesce(sum(gpu_seconds) filter (where is_held and activity = 'inactive'), 0) / 3600 as allocated_idle_gpu_hours
from span
group by all
