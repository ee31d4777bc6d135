-- Growth of the energy counter over gaps with one certain holder throughout, by hour.
--
-- Growth is spread over the time without samples; up to the baseline it is idle. Growth over gaps with a whole hour without samples is unallocated.
--
-- grain:  cluster, device_uuid, ended_at, hour_start_at
-- reads:  day.energy_gap, day.idle_baseline, facts.ownership
-- columns:
--   ended_at         UTC, end of the gap
with met as (
    select
        gap.* similar to '^(cluster|device_uuid|begun_at|ended_at|unexplained_joules)$',
        holder.* similar to '^(gpu_instance_id|certainty)$',
        struct_pack(namespace := holder.namespace, pod := holder.pod, pod_uid := holder.pod_uid, container := holder.container) as holder,
        overlap_ms(holder.start_at, holder.end_at, gap.begun_at, gap.ended_at) as held_ms
    from day.energy_gap as gap
    inner join facts.ownership as holder
        using (cluster, device_uuid)
    where
        gap.unexplained_joules > 0
        and gap.begun_at < gap.ended_at
        and gap.begun_at > date_trunc('hour', gap.ended_at) - interval 1 hour
        and holder.start_at < gap.ended_at
        and holder.end_at > gap.begun_at
),

allocated as (
    select
        columns('^(cluster|device_uuid|begun_at|ended_at)$'),
        any_value(unexplained_joules) as joules,
        any_value(holder) as holder
    from met
    group by cluster, device_uuid, begun_at, ended_at
    having
        count(distinct holder) = 1
        and bool_and(certainty = 'certain' and gpu_instance_id = '')
        and sum(held_ms) = epoch_ms(ended_at - begun_at)
),

hour as (
    select
        *,
        unnest(generate_series(date_trunc('hour', begun_at), ended_at - interval 1 millisecond, interval 1 hour)) as hour_start_at,
        overlap_ms(begun_at, ended_at, hour_start_at, hour_start_at + interval 1 hour) / 1000 as gap_seconds
    from allocated
)

select
    hour.* exclude (holder, begun_at, joules),
    unnest(hour.holder),
    hour.joules * hour.gap_seconds / (epoch_ms(hour.ended_at - hour.begun_at) / 1000) as gap_part_joules,
    baseline.idle_watts,
    coalesce(baseline.idle_source, 'unknown') as idle_source,
    if(baseline.idle_watts is null, null, least(gap_part_joules, baseline.idle_watts * hour.gap_seconds)) as idle_joules
from hour
left join day.idle_baseline as baseline
    on
        hour.cluster = baseline.cluster
        and hour.device_uuid = baseline.device_uuid
        and baseline.layout = ''
