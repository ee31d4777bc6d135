-- Sums of each device per UTC day: facts.device_hour added over hours.
--
-- A row for each set of labels that the device had on the day.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  facts.device_hour
-- params: since_at, until_at
-- source: facts.device_hour
-- columns:
--   cluster                             cluster name
--   device_uuid                         UUID of the physical GPU
--   gpu_instance_id                     MIG instance; '' for the whole GPU
--   day                                 UTC day
--   node_name                           node, '' where unknown
--   gpu_index                           index of the GPU on its node, '' where unknown
--   gpu_device                          device name on the node, '' where unknown
--   gpu_model                           model, '' where unknown
--   gpu_instance_profile                MIG profile, '' for the whole GPU
--   pci_bus_id                          PCI address, '' where unknown
--   driver_version                      GPU driver, '' where unknown
--   make                                nvidia, amd, intel, …; '' where unknown
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
--   energy_gap_joules                   J, growth of the energy counter over gaps and resets that ended here
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
--   power_violation_gap_seconds         s, growth of the power violation counter over gaps and resets that ended here
--   thermal_violation_seen_seconds      s over which the growth of the thermal violation counter is known
--   thermal_violation_seconds           s, growth of the thermal violation counter over those seconds
--   thermal_violation_gap_seconds       s, growth of the thermal violation counter over gaps and resets that ended here
--   sync_boost_violation_seen_seconds   s over which the growth of the sync boost violation counter is known
--   sync_boost_violation_seconds        s, growth of the sync boost violation counter over those seconds
--   sync_boost_violation_gap_seconds    s, growth of the sync boost violation counter over gaps and resets that ended here
--   board_limit_violation_seen_seconds  s over which the growth of the board limit violation counter is known
--   board_limit_violation_seconds       s, growth of the board limit violation counter over those seconds
--   board_limit_violation_gap_seconds   s, growth of the board limit violation counter over gaps and resets that ended here
--   pcie_replay_seen_seconds            s over which the growth of the PCIe replay counter is known
--   pcie_replay_count                   count, growth of the PCIe replay counter over those seconds
--   pcie_replay_gap_count               count, growth of the PCIe replay counter over gaps and resets that ended here
--   xid_seen_seconds                    s in which the XID signal was known
--   active_seconds                      s with activity, by the engine or by GPU utilization, whichever is more in each hour
--   board_observed_seconds              s in which the GPU was seen at all: of its own row, else by the instance seen longest, hour by hour; on one row of each hour
--   sample_count                        scrapes, carried rows left out
--   energy_sample_count                 rows that carry the energy counter
--   power_violation_sample_count        rows that carry the power violation counter
--   thermal_violation_sample_count      rows that carry the thermal violation counter
--   sync_boost_violation_sample_count   rows that carry the sync boost violation counter
--   board_limit_violation_sample_count  rows that carry the board limit violation counter
--   pcie_replay_sample_count            rows that carry the PCIe replay counter
--   xid_event_count                     XID events, a lower bound; null where the signal was not seen
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
--   xid_codes                           distinct codes of those events, ascending; null likewise
--   first_hour_at                       UTC, start of the first hour
--   last_hour_at                        UTC, start of the last hour
with hour as (
    select
        *,
        greatest(coalesce(gr_engine_active_ratio_seconds, 0), coalesce(gpu_util_ratio_seconds, 0)) as active_seconds,
        -- In the order of the hours, so that sums of days are the same wherever they are made.
        if(
            gpu_instance_id = min(gpu_instance_id) over board,
            coalesce(max(observed_seconds) filter (where gpu_instance_id = '') over board, max(observed_seconds) over board),
            null
        ) as board_observed_seconds
    from facts.device_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    window board as (partition by cluster, device_uuid, hour_start_at)
    order by cluster, device_uuid, gpu_instance_id, hour_start_at
)

select
    cluster,
    device_uuid,
    gpu_instance_id,
    hour_start_at::date as day,
    columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$'),
    sum(columns('_(seconds|joules|bytes)$|^pcie_replay(_gap)?_count$')),
    sum(columns('sample_count$|^xid_event_count$'))::bigint,
    max(columns('_max$')),
    list_sort(list_distinct(flatten(list(xid_codes) filter (where xid_codes is not null)))) as xid_codes,
    min(hour_start_at) as first_hour_at,
    max(hour_start_at) as last_hour_at
from hour
group by all
