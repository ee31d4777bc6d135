-- Samples at the edge of energy-counter coverage: the last before, or the first after, a gap or reset.
--
-- Only GPUs with samples without counter growth, besides the last sample, have rows. Power gives the energy of these samples. Before the counter's
-- first sample and after its last one, power counts unchanged. Over a gap it is scaled down to the counter's growth where it exceeds it. Over a reset
-- it counts in full, because a restarted counter shows only a minimum. The time of the last sample is not measured.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  day.energy_before, day.sample_sum, facts.device_hour, lake.device_sample
-- source: growth over gaps (energy_joules_gap_increase, day.energy_before); power of the samples without growth
-- columns:
--   start_at         UTC, the sample
--   reported_joules  J, energy of the sample's time by power; null where the counter shows it, or no source does
with counted as (
    select
        columns('^(cluster|device_uuid)$'),
        coalesce(sum(energy_seen_seconds), 0) = 0 as is_silent,
        count(energy_gap_joules) > 0 or (cluster, device_uuid) in (select (cluster, device_uuid) from day.energy_before) as has_gap
    from facts.device_hour
    where gpu_instance_id = ''
    group by cluster, device_uuid
    having sum(energy_sample_count) > 0 or has_gap
),

doubtful as (
    from counted
    where
        has_gap or is_silent or (cluster, device_uuid) in (
            select (step.cluster, step.device_uuid)
            from day.sample_sum as step
            where step.powered_seconds is not null and step.gpu_instance_id = ''
        )
),

edge as (
    select
        sample.cluster,
        sample.device_uuid,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at,
        coalesce(sample.energy_joules_gap_increase::double, before.gap_joules) as gap_joules,
        coalesce(sample.energy_joules_gap_increase >= sample.energy_joules, before.is_reset) as is_reset,
        sample.energy_joules is not null as has_counter,
        sample.energy_joules_increase is null as has_no_growth,
        if(has_no_growth, sample.power_watts::double * sample.held_seconds, null) as power_joules,
        is_active(
            sample.gpu_util_ratio, sample.gr_engine_active_ratio, sample.sm_active_ratio,
            sample.pcie_tx_bytes_per_second, sample.pcie_rx_bytes_per_second
        ) as is_active,
        doubtful.is_silent
    from lake.device_sample as sample
    inner join doubtful
        using (cluster, device_uuid)
    left join day.energy_before as before
        on sample.cluster = before.cluster and sample.device_uuid = before.device_uuid and sample.seen_at::timestamp = before.ended_at
    where
        sample.gpu_instance_id = ''
        and (sample.energy_joules_gap_increase is not null or sample.energy_joules_increase is null or before.ended_at is not null)
),

placed as (
    select
        *,
        count(gap_joules) over previous_one as gap_count,
        -- A counter's sample without growth is the last one before a gap, or of the day; without a counter, its next sample decides.
        has_no_growth and if(
            has_counter,
            count(gap_joules) over later > 0,
            coalesce(first_value(if(has_counter or gap_joules is not null, gap_joules is not null, null) ignore nulls) over later, false)
        ) as is_within_gap,
        count_if(not has_counter and power_joules is not null) over later > 0 as is_followed
    from edge
    window
        previous_one as (
            partition by cluster, device_uuid
            order by start_at
            rows between unbounded preceding and current row
        ),
        later as (
            partition by cluster, device_uuid
            order by start_at
            rows between 1 following and unbounded following
        )
),

gap as (
    select
        columns('^(cluster|device_uuid)$'),
        gap_count - 1 as gap_count,
        gap_joules,
        is_reset
    from placed
    where gap_joules is not null
),

spread as (
    select
        placed.*,
        if(
            placed.is_within_gap and not gap.is_reset,
            least(1, gap.gap_joules / nullif(sum(placed.power_joules) over (
                partition by placed.cluster, placed.device_uuid, placed.gap_count, placed.is_within_gap
            ), 0)),
            1
        ) as reported_ratio
    from placed
    left join gap
        using (cluster, device_uuid, gap_count)
)

select
    columns('^(cluster|device_uuid|start_at|end_at|gap_joules|is_within_gap|is_active|gap_count)$'),
    if(is_within_gap or is_silent or is_followed or not has_counter, power_joules * coalesce(reported_ratio, 1), null) as reported_joules
from spread
