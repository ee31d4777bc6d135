-- GPUs of pods that no quota of a system governs, over time: they are not available to the quotas.
--
-- A system has no row where no pod of it has a known quota.
--
-- grain:  cluster, system, start_at
-- reads:  day.quota_member, day.quota_native, day.quota_pod
-- source: day.quota_pod less day.quota_member
with system as (
    select distinct
        cluster,
        system
    from day.quota_member
),

outside as (
    select
        pod.cluster,
        system.system,
        pod.* similar to '^(pod_uid|bound_at|ended_at)$',
        greatest(
            sum(native.amount_gpus) filter (where gpu_units(native.resource) is distinct from 0.01),
            max(native.amount_gpus) filter (where gpu_units(native.resource) = 0.01)
        ) as outside_gpus
    from day.quota_pod as pod
    inner join system
        using (cluster)
    -- Requests under Kubernetes' own names: conversions of a quota system do not apply to pods outside its quotas. Percentages are
    -- parts of GPUs that other names count.
    inner join day.quota_native as native
        on
            native.system = ''
            and pod.requests::text = native.requests
    anti join day.quota_member as member
        on
            pod.cluster = member.cluster
            and system.system = member.system
            and pod.pod_uid = member.pod_uid
    where native.amount_gpus > 0 and pod.bound_at is not null
    group by all
),

allocated as (
    select
        columns('^(cluster|system)$'),
        bound_at as start_at,
        ended_at as end_at,
        outside_gpus as amount
    from outside
)

select
    * exclude (amount),
    amount::double as outside_gpus
from running_amounts(allocated, (cluster, system))
where amount > 0
