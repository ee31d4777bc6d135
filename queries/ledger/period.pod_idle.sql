-- Idle time of each pod on GPUs: consecutive hours without activity, and the fraction of its GPUs that were ever active.
--
-- An hour is idle if none of the pod's GPUs was active. Unknown activity counts as use.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.ledger_hour
-- params: since_at, until_at
-- source: facts.ledger_hour
-- columns:
--   is_unknown  whether the activity of some of its time is unknown
--   used_ratio  GPUs and MIG instances with activity in any hour ÷ all of the pod
with hour as (
    select
        columns('^(cluster|namespace|pod|pod_uid|device_uuid|gpu_instance_id|hour_start_at)$'),
        bool_or(activity != 'inactive') as is_used,
        bool_or(activity in ('unseen', 'unreported')) as is_unknown
    from facts.ledger_hour
    where pod != '' and not is_reserved and is_in_period(hour_start_at, $since_at, $until_at)
    group by all
),

idle as (
    select
        columns('^(cluster|namespace|pod|pod_uid|hour_start_at)$'),
        hour_start_at - interval 1 hour * row_number() over (
            partition by cluster, namespace, pod, pod_uid
            order by hour_start_at
        ) as run
    from hour
    group by cluster, namespace, pod, pod_uid, hour_start_at
    having not bool_or(is_used)
),

idle_run as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        [epoch(min(hour_start_at)), epoch(max(hour_start_at)) + 3600] as run
    from idle
    group by cluster, namespace, pod, pod_uid, run
),

found as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        list(run order by run) as idle_runs
    from idle_run
    group by all
)

select
    hour.* similar to '^(cluster|namespace|pod|pod_uid)$',
    count(distinct device_uuid || gpu_instance_id) filter (where is_used) / count(distinct device_uuid || gpu_instance_id) as used_ratio,
    bool_or(is_unknown) as is_unknown,
    coalesce(any_value(found.idle_runs), []) as idle_runs
from hour
left join found
    using (cluster, namespace, pod, pod_uid)
group by all
