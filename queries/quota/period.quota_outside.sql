-- GPUs of pods that no quota of a system governs, over time: they are not available to the quotas.
--
-- A system has no row where no pod of it has a known quota.
--
-- grain:  cluster, system, start_at
-- reads:  day.quota_member, day.quota_native, day.quota_pod, day.quota_terms
-- source: day.quota_pod less day.quota_member while day.quota_terms has the quota
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
    where native.amount_gpus > 0 and pod.bound_at is not null
    group by all
),

governed as (
    select
        outside.* similar to '^(cluster|system|pod_uid|outside_gpus)$',
        greatest(outside.bound_at, term.start_at, member.joined_at) as start_at,
        least(outside.ended_at, term.end_at, member.left_at) as end_at
    from outside
    inner join day.quota_member as member
        using (cluster, system, pod_uid)
    inner join day.quota_terms as term
        using (cluster, system, quota)
    where least(outside.ended_at, term.end_at, member.left_at) > greatest(outside.bound_at, term.start_at, member.joined_at)
),

-- After the last known terms, a pod keeps its quota.
allocated as (
    select
        columns('^(cluster|system)$'),
        bound_at as start_at,
        ended_at as end_at,
        outside_gpus as amount
    from outside
    union all by name
    select
        columns('^(cluster|system|start_at)$'),
        nullif(end_at, (select max(term.end_at) from day.quota_terms as term)) as end_at,
        -outside_gpus as amount
    from merged_runs(governed, '^(cluster|system|pod_uid|outside_gpus)$')
)

select
    * exclude (amount),
    amount::double as outside_gpus
from running_amounts(allocated, (cluster, system))
where amount > 0
