-- Kepler's power of each pod beside ours, over the hours in which Kepler shows the pod.
--
-- Ours is the power above idle on all GPUs of the pod. active_joules_kepler is the same by Kepler's shares. The remaining difference is Kepler's
-- baseline, its two readings a cycle, and pods without a Kepler series.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.kepler_hour, facts.power_hour
-- params: since_at, until_at
-- source: kepler_pod_gpu_watts with state running; facts.power_hour
-- columns: cluster, namespace, pod, pod_uid, kepler_watts_avg, above_idle_watts_avg, kepler_watts_max, kepler_joules, above_idle_joules,
--          active_joules_kepler, kepler_ratio, kepler_seconds, measured_seconds, unknown_reasons
--   kepler_watts_max      W, Kepler's maximum
--   kepler_joules         J, Kepler's watts x the time in which it shows the pod
--   active_joules_kepler  J above our idle baseline by Kepler's shares, in the same hours
--   measured_seconds      s in which the energy of its GPUs is known
with shown as (
    from facts.kepler_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
),

-- The pod of a name and time, because gpureport may not know the uid. The parts of several pods of that name in an hour are then unknown.
ours as (
    select
        shown.* similar to '^(cluster|namespace|pod|pod_uid|hour_start_at)$',
        bool_or(power.idle_source = 'unknown' and power.active_joules is not null) as is_idle_unknown,
        bool_or(power.pod_uid = '') and count(*) over (partition by shown.cluster, shown.namespace, shown.pod, shown.hour_start_at) > 1 as is_of_several,
        if(count(*) = count(power.active_joules) and not is_of_several, sum(power.active_joules + power.allocated_idle_joules), null) as above_idle_joules,
        if(above_idle_joules is null, null, sum(power.active_joules_kepler)) as active_joules_kepler,
        if(above_idle_joules is null, null, max(power.measured_seconds)) as measured_seconds
    from shown
    inner join facts.power_hour as power
        using (cluster, namespace, pod, hour_start_at)
    where (shown.pod_uid in ('', power.pod_uid) or power.pod_uid = '')
    group by shown.cluster, shown.namespace, shown.pod, shown.pod_uid, shown.hour_start_at
),

summed as (
    select
        shown.* similar to '^(cluster|namespace|pod|pod_uid)$',
        sum(shown.kepler_joules) filter (where ours.above_idle_joules is not null) as compared_joules,
        max(shown.kepler_watts_max) as kepler_watts_max,
        bool_or(ours.is_idle_unknown) as is_idle_unknown,
        sum(columns('^(kepler_seconds|kepler_joules|above_idle_joules|active_joules_kepler|measured_seconds)$')),
        count(ours.pod) > 0 as is_holder
    from shown
    left join ours
        using (cluster, namespace, pod, pod_uid, hour_start_at)
    group by shown.cluster, shown.namespace, shown.pod, shown.pod_uid
),

-- With an unknown baseline, all energy counts as above it, which is not comparable.
judged as (
    select
        *,
        case when not is_holder then 'not_a_holder' when is_idle_unknown then 'idle_unknown' when above_idle_joules is null then 'not_collected' end as reason,
        coalesce(reason, if(above_idle_joules = 0, 'not_active', null)) as ratio_reason
    from summed
)

select
    columns('^(cluster|namespace|pod|pod_uid)$'),
    kepler_joules / kepler_seconds as kepler_watts_avg,
    if(reason is null, above_idle_joules / measured_seconds, null) as above_idle_watts_avg,
    kepler_watts_max,
    kepler_joules,
    if(reason is null, columns('^(above_idle_joules|active_joules_kepler)$'), null) as "\0",
    if(ratio_reason is null, compared_joules / above_idle_joules, null) as kepler_ratio,
    kepler_seconds,
    coalesce(measured_seconds, 0) as measured_seconds,
    unknown_reasons(
        [(name, reason) for name in ['above_idle_watts_avg', 'above_idle_joules', 'active_joules_kepler']] || [('kepler_ratio', ratio_reason)]
    ) as unknown_reasons
from judged
