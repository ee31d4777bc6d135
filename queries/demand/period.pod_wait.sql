-- Wait of each pod for accelerators in the window.
--
-- Pods that got a node in the window, started in it, or last waited for a node in it. Each pod has one row, with its latest report.
-- The wait of a pod that still waits at the window's end is until then.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.pod_wait
-- params: since_at, until_at
-- source: facts.pod_wait
-- columns:
--   gpu_model          model of the GPUs of its node; '' while it waits or where unknown
--   requested_gpus     GPUs requested; null where the units have no size in GPUs
--   waiting_seconds    s from created until it was last seen waiting, or until the window's end; null unless is_waiting
--   wanted_model       models of the nodes that it allows (facts.pod_wait); unknown on days of older facts
--   refusal            scheduler's reasons other than GPUs; '' where none or unknown
--   pending_gpu_hours  requested_gpus x h of the window from created to placed; null where the units have no size
with last_reported as (
    select
        *,
        coalesce(scheduled_at, waiting_until_at) as waited_until_at,
        min(running_at) over (partition by cluster, namespace, pod, pod_uid) as first_running_at,
        source = 'snapshot' or count(running_at) over (partition by cluster) > 0 as has_starts
    from facts.pod_wait
    qualify row_number() over (partition by cluster, namespace, pod, pod_uid order by end_at desc, scheduled_at desc nulls last) = 1
),

judged as (
    select
        *,
        if(waited_until_at > $until_at, $until_at::timestamp, waited_until_at) as pending_until_at,
        coalesce(scheduled_at >= $since_at and scheduled_at < $until_at, false) as is_placed,
        coalesce(pending_until_at > $since_at and created_at < $until_at, false)
        and coalesce(scheduled_at >= $until_at, true) as is_waiting,
        coalesce(
            first_running_at >= $since_at and first_running_at < $until_at and scheduled_at is not null, if(has_starts or is_waiting, false, null)
        ) as is_started
    from last_reported
)

select
    columns('^(cluster|namespace|pod|pod_uid|gpu_model|resource|requested_units|requested_gpus|cpu_cores|host_memory_bytes)$'),
    size_class(requested_gpus) as size,
    columns('^(created_at|is_placed|is_started|is_waiting|is_refused)$'),
    coalesce(wanted_model, 'unknown') as wanted_model,
    coalesce(refusal, '') as refusal,
    source,
    greatest(created_at, $since_at::timestamp) as pending_from_at,
    pending_until_at,
    if(is_waiting, null, epoch_ms(scheduled_at - least(created_at, scheduled_at)) / 1000) as placing_seconds,
    epoch_ms(first_running_at - least(scheduled_at, first_running_at)) / 1000 as starting_seconds,
    if(is_waiting, epoch_ms(pending_until_at - created_at) / 1000, null) as waiting_seconds,
    requested_gpus * greatest(0, epoch_ms(pending_until_at - pending_from_at)) / 3600000 as pending_gpu_hours
from judged
where is_placed or is_started or is_waiting
