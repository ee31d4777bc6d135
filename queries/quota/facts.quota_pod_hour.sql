-- Time of each pod in the quotas that govern it, per hour: waiting, allocated, in or over quota, exposed to preemption.
--
-- Only nos has in and over quota: by its rules, and by the observed label.
--
-- revision: 13
-- grain:  cluster, system, quota, resource, flavor, pod_uid, hour_start_at
-- reads:  day.quota_exposure, day.quota_label, day.quota_pod_interval, day.quota_pod_label, day.quota_terms, day.quota_unit, day.quota_watch
-- source: day.quota_pod_interval; nos' rules; label nos.nebuly.com/capacity
-- columns: cluster, system, quota, resource, flavor, namespace, pod, pod_uid, hour_start_at, priority, end_reason, amount_native, amount_gpus, native_unit,
--          waiting_seconds, held_seconds, in_quota_seconds, over_quota_seconds, observed_in_quota_seconds, observed_over_quota_seconds,
--          label_differs_seconds, exposed_seconds, exposed_within_min_seconds, exposed_fair_share_seconds, exposed_same_namespace_seconds, exposed_by
--   quota                        the pod's own quota
--   end_reason                   reason of its end, in its last known hour; else ''
--   amount_gpus                  amount in GPUs
--   held_seconds                 s allocated
with state as (
    select
        *,
        unnest([
            { 'what': 'waiting', 'from_at': created_at, 'until_at': coalesce(bound_at, ended_at, 'infinity'::timestamp), 'by_quota': '' },
            { 'what': 'held', 'from_at': bound_at, 'until_at': coalesce(ended_at, 'infinity'::timestamp), 'by_quota': '' }
        ]) as step
    from day.quota_pod_interval
    union all by name
    select
        own.*,
        { 'what': label.label, 'from_at': label.start_at::timestamp, 'until_at': label.end_at::timestamp, 'by_quota': '' } as step
    from day.quota_pod_interval as own
    inner join day.quota_pod_label as label
        using (cluster, quota, pod_uid)
    where own.system = 'nos'
    union all by name
    select
        own.*,
        { 'what': 'observed ' || label.label, 'from_at': label.start_at, 'until_at': label.end_at, 'by_quota': '' } as step
    from day.quota_pod_interval as own
    inner join day.quota_label as label
        using (cluster, pod_uid)
    where own.system = 'nos'
    union all by name
    select
        own.*,
        {
            'what': 'differs',
            'from_at': greatest(observed.start_at, ruled.start_at::timestamp),
            'until_at': least(observed.end_at, ruled.end_at::timestamp),
            'by_quota': ''
        } as step
    from day.quota_pod_interval as own
    inner join day.quota_label as observed
        using (cluster, pod_uid)
    inner join day.quota_pod_label as ruled
        using (cluster, quota, pod_uid)
    where
        own.system = 'nos'
        and observed.label != ruled.label
        and observed.start_at < ruled.end_at::timestamp
        and ruled.start_at::timestamp < observed.end_at
    union all by name
    select
        own.*,
        { 'what': exposed.condition, 'from_at': exposed.start_at::timestamp, 'until_at': exposed.end_at::timestamp, 'by_quota': by_quota } as step
    from day.quota_pod_interval as own
    inner join day.quota_exposure as exposed
        using (cluster, system, pod_uid)
),

-- Only time with data of the cluster's pods and with known terms of the quota counts, hour by hour.
hour as (
    select
        term.* similar to '^(cluster|system|quota|resource|flavor)$',
        greatest(watch.start_at, term.start_at) as known_at,
        least(watch.end_at, term.end_at) as unknown_at,
        unnest(generate_series(date_trunc('hour', known_at), unknown_at, interval 1 hour)) as hour_start_at
    from day.quota_terms as term
    inner join day.quota_watch as watch
        using (cluster)
    where watch.watched = 'pods' and watch.start_at < term.end_at and watch.end_at > term.start_at
),

part as (
    select
        state.* exclude (step),
        hour.hour_start_at,
        state.step.what,
        state.step.by_quota,
        greatest(state.step.from_at, hour.known_at, hour.hour_start_at) as from_at,
        least(state.step.until_at, hour.unknown_at, hour.hour_start_at + interval 1 hour) as until_at
    from state
    inner join hour
        on
            (state.cluster, state.system, state.quota, state.resource, state.flavor)
            = (hour.cluster, hour.system, hour.quota, hour.resource, hour.flavor)
            and state.step.from_at < hour.hour_start_at + interval 1 hour
            and state.step.until_at > hour.hour_start_at
    where from_at < until_at
),

-- A pod may be exposed to several quotas at once: the time counts once by condition, and once in total.
exposed as (
    select
        *,
        max(until_at) over (
            partition by cluster, system, pod_uid, quota, resource, flavor, hour_start_at, what
            order by from_at, until_at
            rows between unbounded preceding and 1 preceding
        ) as same_until_at,
        max(until_at) over (
            partition by cluster, system, pod_uid, quota, resource, flavor, hour_start_at
            order by from_at, until_at
            rows between unbounded preceding and 1 preceding
        ) as any_until_at,
        greatest(0, epoch_ms(until_at - greatest(from_at, same_until_at))) / 1000 as seconds,
        greatest(0, epoch_ms(until_at - greatest(from_at, any_until_at))) / 1000 as more_seconds
    from part
    where what in ('within min', 'fair share', 'same namespace')
),

exposed_sum as (
    select
        columns('^(cluster|system|pod_uid|quota|resource|flavor|hour_start_at)$'),
        sum(more_seconds) as exposed_seconds,
        sum(seconds) filter (where what = 'within min') as exposed_within_min_seconds,
        sum(seconds) filter (where what = 'fair share') as exposed_fair_share_seconds,
        sum(seconds) filter (where what = 'same namespace') as exposed_same_namespace_seconds,
        list_sort(list(distinct by_quota)) as exposed_by
    from exposed
    group by all
),

summed as (
    select
        columns('^(cluster|pod_uid|system|quota|resource|flavor|hour_start_at)$'),
        max(until_at) filter (where what in ('waiting', 'held')) as last_at,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'waiting'), 0) / 1000 as waiting_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'held'), 0) / 1000 as held_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'in-quota'), 0) / 1000 as in_quota_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'over-quota'), 0) / 1000 as over_quota_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'observed in-quota'), 0) / 1000 as observed_in_quota_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'observed over-quota'), 0) / 1000 as observed_over_quota_seconds,
        coalesce(sum(epoch_ms(until_at - from_at)) filter (where what = 'differs'), 0) / 1000 as label_differs_seconds
    from part
    group by all
    having last_at is not null
)

select
    summed.* similar to '^(cluster|system|quota|resource|flavor)$',
    own.namespace,
    own.pod,
    summed.pod_uid,
    summed.hour_start_at,
    own.* similar to '^(priority|amount_native|amount_gpus)$',
    -- If a pod ends on the next day or under a later quota, its end counts there.
    if(
        own.ended_at <= date_trunc('day', summed.hour_start_at) + interval 1 day
        and summed.last_at = max(summed.last_at) over (partition by summed.cluster, system, resource, flavor, pod_uid),
        own.end_reason,
        ''
    ) as end_reason,
    unit.native_unit,
    summed.waiting_seconds,
    summed.held_seconds,
    if(summed.system = 'nos', columns('^(in|over)_quota_seconds$'), null) as "\0",
    if(
        summed.observed_in_quota_seconds + summed.observed_over_quota_seconds > 0,
        columns('^(observed_in_quota|observed_over_quota|label_differs)_seconds$'),
        null
    ) as "\0",
    if(summed.system in ('nos', 'scheduler-plugins'), coalesce(columns('^exposed_(within_min_)?seconds$'), 0), null)::double as "\0",
    if(summed.system = 'nos', coalesce(exposed_sum.exposed_fair_share_seconds, 0), null)::double as exposed_fair_share_seconds,
    if(summed.system in ('nos', 'scheduler-plugins'), coalesce(exposed_sum.exposed_same_namespace_seconds, 0), null)::double as exposed_same_namespace_seconds,
    coalesce(exposed_sum.exposed_by, []) as exposed_by
from summed
inner join day.quota_pod_interval as own
    using (cluster, system, quota, resource, flavor, pod_uid)
inner join day.quota_unit as unit
    using (system, resource)
left join exposed_sum
    using (cluster, pod_uid, system, quota, resource, flavor, hour_start_at)
