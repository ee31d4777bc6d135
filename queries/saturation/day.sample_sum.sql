-- Sums over samples per hour or interval of a device, in one scan: numerators and denominators of every saturation and energy figure.
--
-- A segment is an hour, an interval of it (day.ownership_interval), or a single row that a change of owners cuts. A segment begins in its hour, so
-- its start alone is the key. Each row counts for the time in which it is valid. A signal without data is null, not 0. Time is whole milliseconds
-- here. Products with a decimal column are also whole numbers: several times as fast as doubles, and exact in any order.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.ownership_interval, lake.device_sample
-- params: memory_threshold_ratio
-- source: DCGM fields by queries/catalog/signal.csv; NVML clock event reasons for the bits (0x1, 0x2 and 0x100 are no throttling)
-- columns: cluster, device_uuid, gpu_instance_id, hour_start_at, start_at, end_at, is_whole_hour, observed_seconds, inactive_seconds, effective_seconds,
--          ineffective_seconds, busy_seconds, unreported_seconds, sample_count, power_seen_seconds, fb_used_seen_seconds, xid_seen_seconds,
--          memory_seen_seconds, throttle_seen_seconds, sm_clock_seen_seconds, memory_clock_seen_seconds, gpu_temp_seen_seconds, memory_temp_seen_seconds,
--          pcie_tx_seen_seconds, pcie_rx_seen_seconds, nvlink_tx_seen_seconds, nvlink_rx_seen_seconds, gpu_util_seen_seconds, mem_copy_util_seen_seconds,
--          gr_engine_active_seen_seconds, sm_active_seen_seconds, sm_occupancy_seen_seconds, tensor_active_seen_seconds, fp64_active_seen_seconds,
--          fp32_active_seen_seconds, fp16_active_seen_seconds, dram_active_seen_seconds, gpu_util_ratio_seconds, mem_copy_util_ratio_seconds,
--          gr_engine_active_ratio_seconds, sm_active_ratio_seconds, sm_occupancy_ratio_seconds, tensor_active_ratio_seconds, fp64_active_ratio_seconds,
--          fp32_active_ratio_seconds, fp16_active_ratio_seconds, dram_active_ratio_seconds, sm_clock_hertz_seconds, memory_clock_hertz_seconds,
--          gpu_temp_celsius_seconds, memory_temp_celsius_seconds, memory_used_ratio_seconds, pcie_tx_bytes, pcie_rx_bytes, nvlink_tx_bytes, nvlink_rx_bytes,
--          fb_used_byte_seconds, power_joules, energy_seen_seconds, power_violation_seen_seconds, thermal_violation_seen_seconds,
--          sync_boost_violation_seen_seconds, board_limit_violation_seen_seconds, low_util_violation_seen_seconds, reliability_violation_seen_seconds,
--          pcie_replay_seen_seconds, energy_joules, power_violation_seconds, thermal_violation_seconds, sync_boost_violation_seconds,
--          board_limit_violation_seconds, low_util_violation_seconds, reliability_violation_seconds, pcie_replay_count, energy_sample_count,
--          power_violation_sample_count, thermal_violation_sample_count, sync_boost_violation_sample_count, board_limit_violation_sample_count,
--          low_util_violation_sample_count, reliability_violation_sample_count, pcie_replay_sample_count, energy_gap_joules, power_violation_gap_seconds,
--          thermal_violation_gap_seconds, sync_boost_violation_gap_seconds, board_limit_violation_gap_seconds, low_util_violation_gap_seconds,
--          reliability_violation_gap_seconds, pcie_replay_gap_count, power_watts_max, power_limit_watts_max, fb_used_bytes_max, sm_clock_hertz_max,
--          memory_clock_hertz_max, gpu_temp_celsius_max, memory_temp_celsius_max, sm_active_ratio_max, dram_active_ratio_max, memory_used_ratio_max,
--          fb_total_bytes_max, memory_pressure_seconds, any_throttle_seconds, hw_slowdown_seconds, sw_power_cap_seen_seconds,
--          sync_boost_seen_seconds, sw_thermal_seen_seconds, hw_thermal_seen_seconds, hw_power_brake_seen_seconds, sw_power_cap_seconds, sync_boost_seconds,
--          sw_thermal_seconds, hw_thermal_seconds, hw_power_brake_seconds, counter_integral_joules, counter_compared_joules, counter_active_seconds,
--          counter_active_joules, counter_unknown_seconds, begun_joules, powered_seconds, powered_joules, powered_active_seconds, powered_active_joules, powered_unknown_seconds,
--          active_watts_max
--   end_at                   UTC, end of the last row's interval, exclusive; end of the hour where nothing is cut
--   begun_joules             J, growth of the energy counter beyond power in inactive intervals, of work that began in them; less than 0 where the counter lags
--   active_watts_max         W, maximum power of an active interval
with cut_hour as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        list(epoch_us(start_at) order by start_at) as cuts
    from day.ownership_interval
    group by all
),

timed as (
    select
        *,
        seen_at::timestamp as row_start_at,
        date_trunc('hour', seen_at::timestamp) as hour_start_at,
        (1000 * held_seconds)::integer as held_ms,
        memory_ratio(fb_used_bytes, fb_free_bytes) as memory_used_ratio,
        -- A negative value is not a bit mask.
        case when throttle_reasons >= 0 then throttle_reasons end as throttle_mask,
        -- 0: not active; 1: at least half of the SMs active; 2: fewer; 3: SM activity unknown.
        case is_active(
            gpu_util_ratio, gr_engine_active_ratio, sm_active_ratio, pcie_tx_bytes_per_second, pcie_rx_bytes_per_second
        )
            when true then case when sm_active_ratio >= 0.5 then 1 when sm_active_ratio is null then 3 else 2 end
            when false then 0
        end as activity,
        -- Null where the energy counter measures, or should measure.
        case when energy_joules_increase is null and energy_joules is null then power_watts end as power_only_watts
    from lake.device_sample
),

-- Hours without a change have no cuts. A scalar subquery, not a left join, because it keeps the rows of the scan together.
looked_up as (
    select
        *,
        (
            select cut_hour.cuts
            from cut_hour
            where
                cut_hour.cluster = timed.cluster and cut_hour.device_uuid = timed.device_uuid
                and cut_hour.hour_start_at = timed.hour_start_at
        ) as cuts
    from timed
),

reached as (
    select
        *,
        case when cuts is not null then epoch_us(row_start_at) + 1000::bigint * greatest(held_ms, 1) end as reach_us
    from looked_up
),

-- The last change before the row's end: the start of its interval, or within it. A row that a change cuts becomes its own segment, so it is
-- split without a second scan.
placed as (
    select
        *,
        case
            when cuts is null then hour_start_at
            when reach_us <= cuts[2] then hour_start_at
            when reach_us > cuts[-1] then least(row_start_at, make_timestamp(cuts[-1]))
            else least(row_start_at, make_timestamp([cut for cut in cuts if cut < reach_us][-1]))
        end as start_at
    from reached
)

-- One sum for each signal that matches a pattern, named after the signal.
select
    cluster,
    device_uuid,
    gpu_instance_id,
    date_trunc('hour', start_at) as hour_start_at,
    start_at,
    coalesce(make_timestamp(max(reach_us)), start_at + interval 1 hour) as end_at,
    max(reach_us) is null as is_whole_hour,
    sum(held_ms) / 1000 as observed_seconds,
    sum(case when activity = 0 then held_ms end) / 1000 as inactive_seconds,
    sum(case when activity = 1 then held_ms end) / 1000 as effective_seconds,
    sum(case when activity = 2 then held_ms end) / 1000 as ineffective_seconds,
    sum(case when activity = 3 then held_ms end) / 1000 as busy_seconds,
    sum(case when activity is null then held_ms end) / 1000 as unreported_seconds,
    count(*) - sum(is_carried::integer)::bigint as sample_count,
    sum(case when columns('^(power|throttle|xid)_(?:watts|mask|code)$|^(fb_used)_bytes$|^(memory)_used_ratio$') is not null then held_ms end) / 1000
        as "\1\2\3_seen_seconds",
    sum(case when columns('^((?:gpu|memory)_temp|(?:sm|memory)_clock|(?:pcie|nvlink)_[tr]x)_(?:celsius|hertz|bytes_per_second)$') is not null then held_ms end)
    / 1000 as "\1_seen_seconds",
    sum(case when columns('^((?:gpu|mem_copy)_util|(?:gr_engine|sm|tensor|fp\d\d|dram)_active|sm_occupancy)_ratio$') is not null then held_ms end) / 1000
        as "\1_seen_seconds",
    sum(columns('^((?:gpu|mem_copy)_util|(?:gr_engine|sm|tensor|fp\d\d|dram)_active|sm_occupancy)_ratio$') * held_ms) / 1000 as "\0_seconds",
    sum(columns('^memory_used_ratio$|_(celsius|hertz)$') * held_seconds) as "\0_seconds",
    sum(columns('^((?:pcie|nvlink)_[tr]x_bytes)_per_second$') * held_seconds) as "\1",
    sum(fb_used_bytes * held_seconds) as fb_used_byte_seconds,
    sum(power_watts * held_ms) / 1000 as power_joules,
    -- Counters: growth to the next sample, number of samples, growth over gaps and resets.
    sum(case when columns('^(\w+)_(joules|seconds|count)_increase$') is not null then held_ms end) / 1000 as "\1_seen_seconds",
    sum(columns('^(\w+_(?:joules|seconds|count))_increase$'))::double as "\1",
    nullif(count(columns('^(energy|\w+_violation|pcie_replay)_(joules|seconds|count)$')), 0) as "\1_sample_count",
    sum(columns('^(\w+)_(joules|seconds|count)_gap_increase$')) as "\1_gap_\2",
    max(columns('^(power|power_limit)_watts$|^(fb_used_bytes|memory_used_ratio)$|_(celsius|hertz)$|^(sm|dram)_active_ratio$'))::double as "\0_max",
    max(coalesce(fb_total_bytes, fb_used_bytes + fb_free_bytes + fb_reserved_bytes)) as fb_total_bytes_max,
    sum(held_ms * (memory_used_ratio >= $memory_threshold_ratio)::integer) / 1000 as memory_pressure_seconds,
    sum(held_ms * (throttle_mask & 252 != 0)::integer) / 1000 as any_throttle_seconds,
    sum(held_ms * (throttle_mask & 8 != 0)::integer) / 1000 as hw_slowdown_seconds,
    -- Each reason by its own counter where there is one, else by the bits.
    coalesce(
        sum(case when columns('^(sw_power_cap|sync_boost|sw_thermal|hw_thermal|hw_power_brake)_active_ratio$') is not null then held_ms end),
        sum(case when throttle_mask is not null then held_ms end)
    ) / 1000 as "\1_seen_seconds",
    coalesce(sum(sw_power_cap_active_ratio * held_ms), sum(held_ms * (throttle_mask & 4 != 0)::integer)) / 1000 as sw_power_cap_seconds,
    coalesce(sum(sync_boost_active_ratio * held_ms), sum(held_ms * (throttle_mask & 16 != 0)::integer)) / 1000 as sync_boost_seconds,
    coalesce(sum(sw_thermal_active_ratio * held_ms), sum(held_ms * (throttle_mask & 32 != 0)::integer)) / 1000 as sw_thermal_seconds,
    coalesce(sum(hw_thermal_active_ratio * held_ms), sum(held_ms * (throttle_mask & 64 != 0)::integer)) / 1000 as hw_thermal_seconds,
    coalesce(sum(hw_power_brake_active_ratio * held_ms), sum(held_ms * (throttle_mask & 128 != 0)::integer)) / 1000 as hw_power_brake_seconds,
    -- Energy: by the counter where it measures or should measure, else by power.
    sum(case when energy_joules_increase is not null then power_watts * held_ms end)::double / 1000 as counter_integral_joules,
    sum(case when power_watts is not null then energy_joules_increase end)::double as counter_compared_joules,
    sum(case when activity is distinct from 0 and energy_joules_increase is not null then held_ms end) / 1000 as counter_active_seconds,
    sum(case when activity is distinct from 0 then energy_joules_increase end)::double as counter_active_joules,
    sum(case when activity is null and energy_joules_increase is not null then held_ms end) / 1000 as counter_unknown_seconds,
    -- A signal covers the time before its sample, the counter the time after it. If the counter grew by a tenth more than power shows, work
    -- began within an interval that looks inactive; less what power shows while the counter waits for its refresh, which the next growth contains.
    sum(case
        when activity = 0 and (energy_joules_increase = 0 or 1000 * energy_joules_increase > 1.1 * power_watts * held_ms)
            then energy_joules_increase::double - power_watts::double * held_ms / 1000
    end) as begun_joules,
    sum(case when power_only_watts is not null then held_ms end) / 1000 as powered_seconds,
    sum(power_only_watts * held_ms)::double / 1000 as powered_joules,
    sum(case when activity is distinct from 0 and power_only_watts is not null then held_ms end) / 1000 as powered_active_seconds,
    sum(case when activity is distinct from 0 then power_only_watts * held_ms end)::double / 1000 as powered_active_joules,
    sum(case when activity is null and power_only_watts is not null then held_ms end) / 1000 as powered_unknown_seconds,
    max(case when activity is distinct from 0 then power_watts end)::double as active_watts_max
from placed
group by cluster, device_uuid, gpu_instance_id, start_at
