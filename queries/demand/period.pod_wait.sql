-- Wait of each pod for accelerators, as far as it lies in the window.
--
-- Pods that were given a place in the window, that began to run in it, or that were last seen waiting for a place in it; each once, as it was told last.
-- A pod that still waits at the window's end has waited until then.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.pod_wait
-- params: since_at, until_at
-- source: facts.pod_wait
-- columns: cluster, namespace, pod, pod_uid, gpu_model, resource, requested_units, requested_gpus, is_placed, is_started, is_waiting, is_refused,
--          placing_seconds, starting_seconds, waiting_seconds
--   gpu_model         model of the GPUs that it was given; '' while it waits, or where unknown
--   resource          what it asked for
--   requested_gpus    the same in GPUs; null where its units have no size in GPUs
--   is_placed         it was given a place in the window
--   is_started        it began to run in the window, and it is known when it was placed
--   is_waiting        it was last seen waiting for a place, at some time of the window
--   placing_seconds   s from created to placed; null where it is not known to have been
--   starting_seconds  s from placed to running; null likewise
--   waiting_seconds   s from created until it was last seen waiting, or until the window's end; null where is_waiting is not
with last_told as (
    select *
    from facts.pod_wait
    qualify row_number() over (partition by cluster, namespace, pod, pod_uid order by end_at desc, scheduled_at desc nulls last) = 1
),

judged as (
    select
        *,
        coalesce(scheduled_at >= $since_at and scheduled_at < $until_at, false) as is_placed,
        coalesce(running_at >= $since_at and running_at < $until_at and scheduled_at is not null, false) as is_started,
        coalesce(scheduled_at is null and waiting_until_at > $since_at and created_at < $until_at, false) as is_waiting,
        epoch_ms(scheduled_at - created_at) / 1000 as placing_seconds,
        epoch_ms(running_at - scheduled_at) / 1000 as starting_seconds,
        epoch_ms(least(waiting_until_at, $until_at) - created_at) / 1000 as waiting_seconds
    from last_told
)

select
    cluster,
    namespace,
    pod,
    pod_uid,
    gpu_model,
    resource,
    requested_units,
    requested_gpus,
    is_placed,
    is_started,
    is_waiting,
    is_refused,
    placing_seconds,
    starting_seconds,
    if(is_waiting, waiting_seconds, null) as waiting_seconds
from judged
where is_placed or is_started or is_waiting
