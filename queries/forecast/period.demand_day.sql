-- Allocated and total GPUs of each model on each whole day of the past, built over all those days at once.
--
-- A day counts for trends where its GPUs were seen for nearly all of it: those of the day, or of the day before where they were more.
--
-- grain:  cluster, gpu_model, day
-- reads:  facts.device_day, facts.ledger_day
-- params: unseen_ratio, until_at
-- source: facts.ledger_day
-- columns:
--   usable_gpu_hours  h of whole GPUs that were seen and could be used
--   is_counted        whether the day was seen for nearly all of its GPUs' time
with model as (
    select
        cluster,
        device_uuid,
        arg_max(gpu_model, last_hour_at) filter (where gpu_model != '') as gpu_model
    from facts.device_day
    group by cluster, device_uuid
),

device_day as (
    select
        cluster,
        device_uuid,
        day,
        sum(gpu_seconds) filter (where activity != 'unseen') as seen_seconds,
        sum(gpu_seconds) filter (where activity != 'unseen' and (outage = '' or pod != '')) as usable_seconds,
        sum(gpu_seconds) filter (where activity != 'unseen' and pod != '' and not is_reserved) as held_seconds
    from facts.ledger_day
    where day + interval 1 day <= $until_at
    group by all
),

daily as (
    select
        device_day.cluster,
        coalesce(model.gpu_model, '') as gpu_model,
        device_day.day,
        count(*) filter (where device_day.seen_seconds > 0) as device_count,
        coalesce(sum(device_day.held_seconds), 0) / 3600 as held_gpu_hours,
        coalesce(sum(device_day.usable_seconds), 0) / 3600 as usable_gpu_hours,
        coalesce(sum(device_day.seen_seconds), 0) / 3600 as seen_gpu_hours
    from device_day
    left join model
        using (cluster, device_uuid)
    group by device_day.cluster, coalesce(model.gpu_model, ''), device_day.day
)

select
    * exclude (seen_gpu_hours),
    seen_gpu_hours >= (1 - $unseen_ratio) * 24 * greatest(device_count, coalesce(lag(device_count) over (
        partition by cluster, gpu_model
        order by day
    ), 0)) as is_counted
from daily
