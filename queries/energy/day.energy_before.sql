-- Growth of a GPU's energy counter over a gap that began more than 15 minutes before the day.
--
-- Energy that power shows before midnight counts on the previous day. Growth above 1.5 x the power limit is invalid.
--
-- grain:  cluster, device_uuid
-- reads:  day.energy_late, lake.device_sample
-- source: samples of the day, and of the day before
-- columns:
--   ended_at   UTC, the counter's first sample of the day
--   is_reset   whether the counter restarted in the gap
with sample as (
    select
        columns('^(cluster|device_uuid|day_start_at|energy_joules_increase|power_limit_watts)$'),
        seen_at::timestamp as start_at,
        energy_joules::double as energy_joules,
        power_watts::double * held_seconds as power_joules,
        is_carried or energy_joules_gap_increase is not null as is_continued,
        start_at < day_start_at as is_before
    from lake.device_sample
    inner join day.energy_late
        using (cluster, device_uuid)
    where gpu_instance_id = ''
),

edge as (
    select
        columns('^(cluster|device_uuid)$'),
        max(start_at) filter (where is_before and energy_joules is not null) as begun_at,
        min(start_at) filter (where not is_before and energy_joules is not null) as ended_at,
        arg_max(energy_joules, start_at) filter (where is_before) as begun_joules,
        arg_min(energy_joules, start_at) filter (where not is_before) as ended_joules,
        ended_joules < begun_joules as is_reset,
        ended_joules - if(is_reset, 0, begun_joules) as growth_joules
    from sample
    group by cluster, device_uuid
    having
        begun_at < any_value(day_start_at) - interval 15 minutes
        and not arg_min(is_continued, start_at) filter (where not is_before and energy_joules is not null)
        and growth_joules > 0
        and growth_joules <= coalesce(1.5 * max(power_limit_watts), 3000) * epoch(ended_at - begun_at)
)

select
    edge.* similar to '^(cluster|device_uuid|ended_at|is_reset)$',
    -- The same rule as on the previous day: the counter's last sample counts by power only if power has later samples without the counter.
    greatest(0, any_value(edge.growth_joules) - coalesce(if(
        count(sample.energy_joules_increase) > 0
        and count(sample.power_joules) filter (where sample.energy_joules is null and sample.start_at > edge.begun_at) = 0,
        0,
        sum(sample.power_joules) filter (
            where sample.energy_joules_increase is null and (sample.energy_joules = edge.begun_joules or sample.start_at > edge.begun_at)
        )
    ), 0)) as gap_joules
from edge
inner join sample
    using (cluster, device_uuid)
where sample.is_before
group by all
