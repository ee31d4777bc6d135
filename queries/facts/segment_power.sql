-- The one scan over the samples for energy: measured, and in active spans, per stretch of a GPU's hour.
--
-- Segments are those of facts.segment_saturation. Energy of a sample's span is the growth of the energy counter; beside it power over
-- the time of samples that show no counter: the energy of GPUs that have none. Of others facts.energy_edge tells.
--
-- Active is a span with GPU utilisation above 0, engine or SM activity of 0.001 or more, or 100 MB/s over PCIe: contexts that
-- are merely held show 6e-5. Where none of these is known a span counts as active.
-- Signals tell of the time before their sample, the counter of the time after it: where it grew by a tenth more than power tells,
-- work began within a span that looks inactive.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  facts.piece, lake.device_sample
-- params:
-- source: DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, DCGM_FI_DEV_POWER_USAGE and the activity signals of the whole GPU
-- columns:
--   cluster                   cluster name
--   device_uuid               UUID of the physical GPU
--   hour_start_at             UTC, start of the hour
--   start_at                  UTC, start of the segment
--   end_at                    UTC, its end, outside it
--   observed_seconds          s in which the GPU was seen
--   counter_seconds           s over which the energy counter's growth is known; null where it is at no time
--   counter_joules            J, its growth
--   integral_joules           J, power over the time of counter_joules
--   counter_active_seconds    s of counter_seconds in active spans
--   counter_active_joules     J of counter_joules in active spans, idle included
--   counter_unknown_seconds   s of counter_seconds in spans that count as active because no signal says otherwise
--   begun_joules              J, growth of the counter beyond power in other spans, of work that began within them
--   power_seconds             s with power and without a counter; null where there are none
--   power_joules              J, power over them
--   power_active_seconds      s of power_seconds in active spans
--   power_active_joules       J of power_joules in active spans, idle included
--   power_unknown_seconds     s of power_seconds in spans that count as active because no signal says otherwise
--   active_watts_max          largest power of an active span
--   power_watts_min           smallest power
--   power_watts_max           largest power
with cut_hour as (
    select
        device_uuid,
        hour_start_at,
        list(epoch_us(start_at) order by start_at) as cuts
    from facts.piece
    group by all
),

board as (
    select
        cluster,
        device_uuid,
        seen_at::timestamp as row_start_at,
        date_trunc('hour', seen_at::timestamp) as hour_start_at,
        (1000 * held_seconds)::integer as held_ms,
        power_watts,
        energy_joules_increase,
        -- Null where the counter tells, or should.
        case when energy_joules_increase is null and energy_joules is null then power_watts end as power_only_watts,
        coalesce(gpu_util_ratio > 0, false)
        or coalesce(gr_engine_active_ratio >= 0.001, false)
        or coalesce(sm_active_ratio >= 0.001, false)
        or coalesce(pcie_tx_bytes_per_second >= 1e8, false)
        or coalesce(pcie_rx_bytes_per_second >= 1e8, false) as is_active,
        coalesce(
            gpu_util_ratio, gr_engine_active_ratio, sm_active_ratio, pcie_tx_bytes_per_second, pcie_rx_bytes_per_second
        ) is null as is_unknown
    from lake.device_sample
    where gpu_instance_id = ''
),

looked_up as (
    select
        * exclude (is_active),
        is_active or is_unknown as counts_active,
        (
            select cut_hour.cuts
            from cut_hour
            where cut_hour.device_uuid = board.device_uuid and cut_hour.hour_start_at = board.hour_start_at
        ) as cuts
    from board
),

reached as (
    select
        *,
        case when cuts is not null then epoch_us(row_start_at) + 1000::bigint * greatest(held_ms, 1) end as reach_us
    from looked_up
),

placed as (
    select
        *,
        case
            when cuts is null or reach_us <= cuts[2] then hour_start_at
            when reach_us > cuts[-1] then least(row_start_at, make_timestamp(cuts[-1]))
            else least(row_start_at, make_timestamp([cut for cut in cuts if cut < reach_us][-1]))
        end as start_at
    from reached
),

summed as (
    select
        any_value(cluster) as cluster,
        device_uuid,
        start_at,
        max(reach_us) as reach_us,
        sum(held_ms) as observed_ms,
        sum(case when energy_joules_increase is not null then held_ms end) as counter_ms,
        sum(energy_joules_increase)::double as counter_joules,
        sum(case when energy_joules_increase is not null then power_watts * held_ms end)::double / 1000 as integral_joules,
        sum(case when power_only_watts is not null then held_ms end) as power_ms,
        sum(power_only_watts * held_ms)::double / 1000 as power_joules,
        sum(case when counts_active and energy_joules_increase is not null then held_ms end) as active_counter_ms,
        sum(case when counts_active then energy_joules_increase end)::double as active_counter_joules,
        sum(case when counts_active and power_only_watts is not null then held_ms end) as active_power_ms,
        sum(case when counts_active then power_only_watts * held_ms end)::double / 1000 as active_power_joules,
        sum(case
            when not counts_active and 1000 * energy_joules_increase > 1.1 * power_watts * held_ms
                then energy_joules_increase::double - power_watts::double * held_ms / 1000
        end) as begun_joules,
        sum(case when is_unknown and energy_joules_increase is not null then held_ms end) as unknown_counter_ms,
        sum(case when is_unknown and power_only_watts is not null then held_ms end) as unknown_power_ms,
        max(case when counts_active then power_watts end)::double as active_watts_max,
        min(power_watts)::double as power_watts_min,
        max(power_watts)::double as power_watts_max
    from placed
    group by device_uuid, start_at
)

select
    cluster,
    device_uuid,
    date_trunc('hour', start_at) as hour_start_at,
    start_at,
    coalesce(make_timestamp(reach_us), start_at + interval 1 hour) as end_at,
    observed_ms / 1000 as observed_seconds,
    counter_ms / 1000 as counter_seconds,
    counter_joules,
    integral_joules,
    coalesce(active_counter_ms, 0) / 1000 as counter_active_seconds,
    coalesce(active_counter_joules, 0) as counter_active_joules,
    coalesce(unknown_counter_ms, 0) / 1000 as counter_unknown_seconds,
    coalesce(begun_joules, 0) as begun_joules,
    power_ms / 1000 as power_seconds,
    power_joules,
    coalesce(active_power_ms, 0) / 1000 as power_active_seconds,
    coalesce(active_power_joules, 0) as power_active_joules,
    coalesce(unknown_power_ms, 0) / 1000 as power_unknown_seconds,
    active_watts_max,
    power_watts_min,
    power_watts_max
from summed
