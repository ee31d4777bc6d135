-- Sums per ownership interval of the hours in which holders change: one constant set of holders each.
--
-- A row that a change cuts is shared out by seconds; what happened at its start (the scrape, a gap's growth) stays with the start.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.ownership_interval, day.sample_sum, facts.xid_event
-- params:
-- source: day.sample_sum; XID events by instant
-- columns:
--   cluster                             cluster name
--   device_uuid                         UUID of the physical GPU
--   gpu_instance_id                     MIG instance; '' for the whole GPU
--   hour_start_at                       UTC, start of the hour
--   start_at                            UTC, start of the span
--   end_at                              UTC, its end, outside it
--   observed_seconds                    s in which the device was seen at all
--   inactive_seconds                    s in which its signals show no activity
--   effective_seconds                   s in which it was active with SM activity of 0.5 or more
--   ineffective_seconds                 s in which it was active with SM activity below 0.5
--   busy_seconds                        s in which it was active and SM activity is not known
--   untold_seconds                      s in which no signal tells whether it was active
--   power_seen_seconds                  s in which power was known
--   power_joules                        J, power integrated over the seconds in which it was known
--   energy_seen_seconds                 s over which the growth of the energy counter is known
--   energy_joules                       J, growth of the energy counter over those seconds
--   gpu_util_seen_seconds               s in which GPU utilisation was known
--   gpu_util_ratio_seconds              s x share of time with a kernel running
--   mem_copy_util_seen_seconds          s in which memory copy utilisation was known
--   mem_copy_util_ratio_seconds         s x share of time with memory being copied
--   fb_used_seen_seconds                s in which memory in use was known
--   fb_used_byte_seconds                s x bytes of memory in use
--   memory_seen_seconds                 s in which used / (used + free) was known
--   memory_used_ratio_seconds           s x used / (used + free)
--   memory_pressure_seconds             s with used / (used + free) at or above the threshold
--   gpu_temp_seen_seconds               s in which GPU temperature was known
--   gpu_temp_celsius_seconds            s x degrees Celsius of the GPU
--   memory_temp_seen_seconds            s in which memory temperature was known
--   memory_temp_celsius_seconds         s x degrees Celsius of the memory
--   sm_clock_seen_seconds               s in which SM clock was known
--   sm_clock_hertz_seconds              s x Hz of the SM clock
--   memory_clock_seen_seconds           s in which memory clock was known
--   memory_clock_hertz_seconds          s x Hz of the memory clock
--   gr_engine_active_seen_seconds       s in which engine activity was known
--   gr_engine_active_ratio_seconds      s x engine activity, 0..1
--   sm_active_seen_seconds              s in which SM activity was known
--   sm_active_ratio_seconds             s x SM activity, 0..1
--   sm_occupancy_seen_seconds           s in which SM occupancy was known
--   sm_occupancy_ratio_seconds          s x SM occupancy, 0..1
--   tensor_active_seen_seconds          s in which tensor pipe activity was known
--   tensor_active_ratio_seconds         s x tensor pipe activity, 0..1
--   fp64_active_seen_seconds            s in which FP64 pipe activity was known
--   fp64_active_ratio_seconds           s x FP64 pipe activity, 0..1
--   fp32_active_seen_seconds            s in which FP32 pipe activity was known
--   fp32_active_ratio_seconds           s x FP32 pipe activity, 0..1
--   fp16_active_seen_seconds            s in which FP16 pipe activity was known
--   fp16_active_ratio_seconds           s x FP16 pipe activity, 0..1
--   dram_active_seen_seconds            s in which memory bandwidth activity was known
--   dram_active_ratio_seconds           s x memory bandwidth activity, 0..1
--   pcie_tx_seen_seconds                s in which the rate device to host over PCIe was known
--   pcie_tx_bytes                       bytes device to host over PCIe, the rate integrated
--   pcie_rx_seen_seconds                s in which the rate host to device over PCIe was known
--   pcie_rx_bytes                       bytes host to device over PCIe, the rate integrated
--   nvlink_tx_seen_seconds              s in which the rate sent over NVLink was known
--   nvlink_tx_bytes                     bytes sent over NVLink, the rate integrated
--   nvlink_rx_seen_seconds              s in which the rate received over NVLink was known
--   nvlink_rx_bytes                     bytes received over NVLink, the rate integrated
--   throttle_seen_seconds               s in which the reasons bitmask was known; a negative one is none
--   sw_power_cap_seen_seconds           s in which software power cap was known: by its counter, else by the bitmask
--   sw_power_cap_seconds                s with 0x4, software power cap
--   hw_slowdown_seconds                 s with 0x8, hardware slowdown (heat, brake or external)
--   sync_boost_seen_seconds             s in which sync boost was known: by its counter, else by the bitmask
--   sync_boost_seconds                  s with 0x10, sync boost
--   sw_thermal_seen_seconds             s in which software thermal slowdown was known: by its counter, else by the bitmask
--   sw_thermal_seconds                  s with 0x20, software thermal slowdown
--   hw_thermal_seen_seconds             s in which hardware thermal slowdown was known: by its counter, else by the bitmask
--   hw_thermal_seconds                  s with 0x40, hardware thermal slowdown
--   hw_power_brake_seen_seconds         s in which hardware power brake was known: by its counter, else by the bitmask
--   hw_power_brake_seconds              s with 0x80, hardware power brake
--   any_throttle_seconds                s with any of these six bits
--   power_violation_seen_seconds        s over which the growth of the power violation counter is known
--   power_violation_seconds             s, growth of the power violation counter over those seconds
--   thermal_violation_seen_seconds      s over which the growth of the thermal violation counter is known
--   thermal_violation_seconds           s, growth of the thermal violation counter over those seconds
--   sync_boost_violation_seen_seconds   s over which the growth of the sync boost violation counter is known
--   sync_boost_violation_seconds        s, growth of the sync boost violation counter over those seconds
--   board_limit_violation_seen_seconds  s over which the growth of the board limit violation counter is known
--   board_limit_violation_seconds       s, growth of the board limit violation counter over those seconds
--   pcie_replay_seen_seconds            s over which the growth of the PCIe replay counter is known
--   pcie_replay_count                   count, growth of the PCIe replay counter over those seconds
--   xid_seen_seconds                    s in which the XID signal was known
--   energy_gap_joules                   J, growth of the energy counter over gaps and resets that ended here
--   power_violation_gap_seconds         s, growth of the power violation counter over gaps and resets that ended here
--   thermal_violation_gap_seconds       s, growth of the thermal violation counter over gaps and resets that ended here
--   sync_boost_violation_gap_seconds    s, growth of the sync boost violation counter over gaps and resets that ended here
--   board_limit_violation_gap_seconds   s, growth of the board limit violation counter over gaps and resets that ended here
--   pcie_replay_gap_count               count, growth of the PCIe replay counter over gaps and resets that ended here
--   sample_count                        scrapes, carried rows left out
--   energy_sample_count                 rows that carry the energy counter
--   power_violation_sample_count        rows that carry the power violation counter
--   thermal_violation_sample_count      rows that carry the thermal violation counter
--   sync_boost_violation_sample_count   rows that carry the sync boost violation counter
--   board_limit_violation_sample_count  rows that carry the board limit violation counter
--   pcie_replay_sample_count            rows that carry the PCIe replay counter
--   power_watts_max                     largest power
--   power_limit_watts_max               largest enforced power limit
--   fb_used_bytes_max                   largest memory in use
--   fb_total_bytes_max                  largest memory in all; used + free + reserved where the total is not published
--   memory_used_ratio_max               largest used / (used + free) of one instant
--   gpu_temp_celsius_max                largest GPU temperature
--   memory_temp_celsius_max             largest memory temperature
--   sm_clock_hertz_max                  largest SM clock
--   memory_clock_hertz_max              largest memory clock
--   sm_active_ratio_max                 largest SM activity
--   dram_active_ratio_max               largest memory bandwidth activity
--   xid_event_count                     XID events, a lower bound; null where the signal was not seen
--   xid_codes                           distinct codes of those events, ascending; null likewise
with part as (
    select
        segment.* exclude (
            start_at, end_at, counter_integral_joules, counter_active_seconds, counter_active_joules, counter_unknown_seconds,
            begun_joules, powered_seconds, powered_joules, powered_active_seconds, powered_active_joules, powered_unknown_seconds,
            active_watts_max, power_watts_min
        ),
        ownership_interval.start_at,
        ownership_interval.end_at,
        segment.start_at >= ownership_interval.start_at as holds_start,
        case
            when segment.start_at >= ownership_interval.start_at and segment.end_at <= ownership_interval.end_at then 1
            else
                epoch(least(segment.end_at, ownership_interval.end_at) - greatest(segment.start_at, ownership_interval.start_at))
                / epoch(segment.end_at - segment.start_at)
        end as share_ratio
    from day.sample_sum as segment
    inner join day.ownership_interval
        on
            segment.cluster = ownership_interval.cluster
            and segment.device_uuid = ownership_interval.device_uuid
            and segment.hour_start_at = ownership_interval.hour_start_at
            and segment.start_at < ownership_interval.end_at
            and (segment.end_at > ownership_interval.start_at or segment.start_at >= ownership_interval.start_at)
),

event as (
    select
        xid_event.cluster,
        xid_event.device_uuid,
        xid_event.gpu_instance_id,
        ownership_interval.start_at,
        sum(xid_event.event_count)::bigint as event_count,
        list(distinct xid_event.xid_code order by xid_event.xid_code) as codes
    from facts.xid_event
    inner join day.ownership_interval
        on
            xid_event.cluster = ownership_interval.cluster
            and xid_event.device_uuid = ownership_interval.device_uuid
            and xid_event.seen_at >= ownership_interval.start_at
            and xid_event.seen_at < ownership_interval.end_at
    group by all
)

select
    part.cluster,
    part.device_uuid,
    part.gpu_instance_id,
    part.hour_start_at,
    part.start_at,
    part.end_at,
    -- A row that the interval cuts counts in proportion; what belongs to one instant counts where that instant lies.
    sum(columns(lambda name: regexp_matches(name, '_(seconds|joules|bytes)$|_replay_count$') and not contains(name, '_gap_')) * share_ratio) as "\0",
    sum(columns('_gap_')) filter (where holds_start) as "\0",
    sum(columns('sample_count$')) filter (where holds_start)::bigint as "\0",
    max(columns('_max$')) as "\0",
    coalesce(any_value(event.event_count), if(count(part.xid_seen_seconds) > 0, 0, null)) as xid_event_count,
    coalesce(any_value(event.codes), if(count(part.xid_seen_seconds) > 0, []::integer[], null)) as xid_codes
from part
left join event
    using (cluster, device_uuid, gpu_instance_id, start_at)
group by part.cluster, part.device_uuid, part.gpu_instance_id, part.hour_start_at, part.start_at, part.end_at
