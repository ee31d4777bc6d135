-- Energy of each holder on each of its GPUs or MIG instances per hour: active, and idle while allocated.
--
-- One holder of a whole GPU has all energy above idle. Several holders share it by their own utilization, else by Kepler's values (day.power_util),
-- else in equal parts. Holders of MIG instances share it by activity (day.power_activity); sharers of an instance like those of a whole GPU
-- (day.instance_util). Where the baseline is unknown, all measured energy counts as above it. Idle energy is split like hours: by the allocated part
-- of the GPU where known, else in equal parts; under MIG by compute slices of the whole GPU. Growth over a gap of the counter's samples belongs to
-- the holder that certainly held the GPU throughout (day.gap_holder).
--
-- revision: 14
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.allocated_interval, day.gap_holder, day.instance_util, day.partition_interval, day.power_activity, day.power_interval, day.power_util
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at, observed_seconds, gpu_seconds, measured_seconds,
--          active_joules, active_joules_unweighted, active_joules_kepler, allocated_idle_joules, idle_joules, active_seconds, held_seconds,
--          activity_unknown_seconds, equal_seconds, active_watts_max, clamped_count, idle_watts, idle_source, hours_method, method, scope
--   observed_seconds      s in which the GPU had data while allocated
--   gpu_seconds           s x part of the GPU: of sharers by hours_method, of a MIG instance its compute slices of 7 (A30: of 4)
--   idle_joules           J, the holder's part of the idle baseline; null where the baseline or the energy is unknown
--   idle_watts            W, idle power of the whole GPU; null where it is unknown
with allocated as (
    select
        allocated.*,
        -- Share of the whole GPU; with holders of its instances, share of their part.
        allocated.hours_ratio * allocated.instance_owner_count / allocated.owner_count as gpu_ratio,
        coalesce(part.seen_seconds, power.observed_seconds) as observed_seconds,
        coalesce(part.gpu_seconds, 0) * allocated.hours_ratio as gpu_seconds,
        power.* exclude (cluster, device_uuid, hour_start_at, start_at, end_at, owner_count, observed_seconds)
    from day.allocated_interval as allocated
    left join day.partition_interval as part
        using (cluster, device_uuid, gpu_instance_id, start_at)
    left join day.power_interval as power
        using (cluster, device_uuid, start_at)
    where part.start_at is not null or power.start_at is not null
),

reported as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at|idle_watts|idle_source|hours_method)$'),
        columns('^(observed|gpu|measured|active|activity_unknown)_seconds$'),
        active_joules / owner_count as active_joules,
        active_joules / owner_count as active_joules_unweighted,
        (active_joules + allocated_idle_joules) / owner_count as active_joules_kepler,
        allocated_idle_joules / owner_count as allocated_idle_joules,
        idle_joules * gpu_ratio as idle_joules,
        if(share = 'equal', active_seconds, 0) as equal_seconds,
        active_watts_max / owner_count as active_watts_max,
        0 as clamped_count,
        if(share = 'equal', 'equal_share', 'exclusive') as method,
        'device' as scope
    from allocated
    where share in ('alone', 'equal')
    union all by name
    select
        allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at|idle_watts|idle_source|hours_method|gpu_seconds)$',
        util.* exclude (cluster, holder_number),
        util.active_joules as active_joules_unweighted,
        0 as clamped_count
    from allocated
    inner join day.power_util as util on allocated.holder_number = util.holder_number
    union all by name
    select
        allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at|idle_watts)$',
        coalesce(allocated.idle_source, 'unknown') as idle_source,
        allocated.* similar to '^(hours_method|observed_seconds|gpu_seconds)$',
        activity.measured_seconds,
        coalesce(util.active_joules, activity.active_joules / allocated.instance_owner_count) as active_joules,
        coalesce(util.active_joules_unweighted, activity.active_joules_unweighted / allocated.instance_owner_count) as active_joules_unweighted,
        coalesce(util.active_joules_kepler, activity.active_joules_kepler / allocated.instance_owner_count) as active_joules_kepler,
        activity.allocated_idle_joules / allocated.instance_owner_count as allocated_idle_joules,
        activity.idle_joules * allocated.hours_ratio as idle_joules,
        activity.active_seconds,
        activity.activity_unknown_seconds,
        greatest(activity.equal_seconds, util.equal_seconds) as equal_seconds,
        case
            when util.holder_number is null then activity.active_watts_max / allocated.instance_owner_count
            when util.active_watts_max + activity.active_watts_max is not null then least(util.active_watts_max, activity.active_watts_max)
        end as active_watts_max,
        activity.clamped_count,
        coalesce(nullif(concat_ws(', ', activity.method, util.method), ''), 'none') as method,
        coalesce(util.scope, 'device') as scope
    from allocated
    left join day.power_activity as activity
        using (cluster, device_uuid, gpu_instance_id, start_at)
    left join day.instance_util as util on allocated.holder_number = util.holder_number
    where allocated.share is null or allocated.share = 'activity'
    union all by name
    select
        * exclude (ended_at, gap_seconds, gap_part_joules),
        '' as gpu_instance_id,
        0 as observed_seconds,
        0 as gpu_seconds,
        gap_seconds as measured_seconds,
        gap_part_joules - coalesce(idle_joules, 0) as active_joules,
        active_joules as active_joules_unweighted,
        active_joules as active_joules_kepler,
        0 as allocated_idle_joules,
        gap_seconds as active_seconds,
        gap_seconds as activity_unknown_seconds,
        0 as equal_seconds,
        0 as clamped_count,
        'exclusive' as hours_method,
        'exclusive' as method,
        'device' as scope
    from day.gap_holder
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at)$'),
    sum(columns('^(observed|gpu|measured)_seconds$|_joules')),
    sum(if(measured_seconds is null, null, active_seconds)) as active_seconds,
    sum(measured_seconds - active_seconds) as held_seconds,
    sum(if(measured_seconds is null, null, columns('^(activity_unknown|equal)_seconds$'))) as "\0",
    max(active_watts_max) as active_watts_max,
    sum(clamped_count)::bigint as clamped_count,
    max(idle_watts) as idle_watts,
    any_value(idle_source) as idle_source,
    string_agg(distinct hours_method, ', ' order by hours_method) as hours_method,
    string_agg(distinct method, ', ' order by method) as method,
    max(scope) as scope
from reported
group by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
