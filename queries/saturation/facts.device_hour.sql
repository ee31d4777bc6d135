-- Sums of each device per hour, which add up over hours and devices.
--
-- Board figures stand on the whole GPU's row alone: a MIG instance has none of its own.
--
-- grain:  cluster, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.device_run, day.sample_sum, facts.xid_event
-- params: memory_threshold_ratio
-- source: day.sample_sum; labels of the device's own series
-- columns:
--   cluster                             cluster name
--   device_uuid                         UUID of the physical GPU
--   gpu_instance_id                     MIG instance; '' for the whole GPU
--   hour_start_at                       UTC, start of the hour
--   observed_seconds                    s in which the device was seen at all
--   inactive_seconds                    s in which its signals show no activity
--   effective_seconds                   s in which it was active with SM activity of 0.5 or more
--   ineffective_seconds                 s in which it was active with SM activity below 0.5
--   busy_seconds                        s in which it was active and SM activity is not known
--   untold_seconds                      s in which no signal tells whether it was active
--   sample_count                        scrapes, carried rows left out
--   power_seen_seconds                  s in which power was known
--   power_joules                        J, power integrated over the seconds in which it was known
--   power_watts_max                     largest power
--   power_limit_watts_max               largest enforced power limit
--   energy_seen_seconds                 s over which the growth of the energy counter is known
--   energy_joules                       J, growth of the energy counter over those seconds
--   energy_sample_count                 rows that carry the energy counter
--   energy_gap_joules                   J, growth of the energy counter over gaps and resets that ended here
--   gpu_util_seen_seconds               s in which GPU utilisation was known
--   gpu_util_ratio_seconds              s x share of time with a kernel running
--   mem_copy_util_seen_seconds          s in which memory copy utilisation was known
--   mem_copy_util_ratio_seconds         s x share of time with memory being copied
--   fb_used_seen_seconds                s in which memory in use was known
--   fb_used_byte_seconds                s x bytes of memory in use
--   fb_used_bytes_max                   largest memory in use
--   fb_total_bytes_max                  largest memory in all; used + free + reserved where the total is not published
--   memory_seen_seconds                 s in which used / (used + free) was known
--   memory_used_ratio_seconds           s x used / (used + free)
--   memory_used_ratio_max               largest used / (used + free) of one instant
--   memory_pressure_seconds             s with used / (used + free) at or above the threshold
--   gpu_temp_seen_seconds               s in which GPU temperature was known
--   gpu_temp_celsius_seconds            s x degrees Celsius of the GPU
--   gpu_temp_celsius_max                largest GPU temperature
--   memory_temp_seen_seconds            s in which memory temperature was known
--   memory_temp_celsius_seconds         s x degrees Celsius of the memory
--   memory_temp_celsius_max             largest memory temperature
--   sm_clock_seen_seconds               s in which SM clock was known
--   sm_clock_hertz_seconds              s x Hz of the SM clock
--   sm_clock_hertz_max                  largest SM clock
--   memory_clock_seen_seconds           s in which memory clock was known
--   memory_clock_hertz_seconds          s x Hz of the memory clock
--   memory_clock_hertz_max              largest memory clock
--   gr_engine_active_seen_seconds       s in which engine activity was known
--   gr_engine_active_ratio_seconds      s x engine activity, 0..1
--   sm_active_seen_seconds              s in which SM activity was known
--   sm_active_ratio_seconds             s x SM activity, 0..1
--   sm_active_ratio_max                 largest SM activity
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
--   dram_active_ratio_max               largest memory bandwidth activity
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
--   power_violation_sample_count        rows that carry the power violation counter
--   power_violation_gap_seconds         s, growth of the power violation counter over gaps and resets that ended here
--   thermal_violation_seen_seconds      s over which the growth of the thermal violation counter is known
--   thermal_violation_seconds           s, growth of the thermal violation counter over those seconds
--   thermal_violation_sample_count      rows that carry the thermal violation counter
--   thermal_violation_gap_seconds       s, growth of the thermal violation counter over gaps and resets that ended here
--   sync_boost_violation_seen_seconds   s over which the growth of the sync boost violation counter is known
--   sync_boost_violation_seconds        s, growth of the sync boost violation counter over those seconds
--   sync_boost_violation_sample_count   rows that carry the sync boost violation counter
--   sync_boost_violation_gap_seconds    s, growth of the sync boost violation counter over gaps and resets that ended here
--   board_limit_violation_seen_seconds  s over which the growth of the board limit violation counter is known
--   board_limit_violation_seconds       s, growth of the board limit violation counter over those seconds
--   board_limit_violation_sample_count  rows that carry the board limit violation counter
--   board_limit_violation_gap_seconds   s, growth of the board limit violation counter over gaps and resets that ended here
--   pcie_replay_seen_seconds            s over which the growth of the PCIe replay counter is known
--   pcie_replay_count                   count, growth of the PCIe replay counter over those seconds
--   pcie_replay_sample_count            rows that carry the PCIe replay counter
--   pcie_replay_gap_count               count, growth of the PCIe replay counter over gaps and resets that ended here
--   xid_seen_seconds                    s in which the XID signal was known
--   xid_event_count                     XID events, a lower bound; null where the signal was not seen
--   xid_codes                           distinct codes of those events, ascending; null likewise
--   memory_threshold_ratio              threshold behind memory_pressure_seconds
--   node_name                           node, '' where unknown
--   gpu_index                           index of the GPU on its node, '' where unknown
--   gpu_device                          device name on the node, '' where unknown
--   gpu_model                           model, '' where unknown
--   gpu_instance_profile                MIG profile, '' for the whole GPU
--   pci_bus_id                          PCI address, '' where unknown
--   driver_version                      GPU driver, '' where unknown
--   make                                nvidia, amd, intel, …; '' where unknown
-- What only energy reads stays behind.
with part as (
    select
        * exclude (
            end_at, counter_integral_joules, counter_active_seconds, counter_active_joules,
            counter_unknown_seconds, begun_joules, powered_seconds, powered_joules, powered_active_seconds, powered_active_joules,
            powered_unknown_seconds, active_watts_max, power_watts_min
        )
    from day.sample_sum
),

-- Whole hours are rows already; the parts of the others are added up.
summed as (
    select * exclude (start_at, is_whole_hour)
    from part
    where is_whole_hour
    union all by name
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        hour_start_at,
        sum(columns('_(seconds|joules|bytes)$|_replay(_gap)?_count$')) as "\0",
        sum(columns('sample_count$'))::bigint as "\0",
        max(columns('_max$')) as "\0"
    from part
    where not is_whole_hour
    group by all
),

event as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        date_trunc('hour', seen_at) as hour_start_at,
        sum(event_count)::bigint as event_count,
        list(distinct xid_code order by xid_code) as codes
    from facts.xid_event
    group by all
),

run as (
    select
        summed.cluster,
        summed.device_uuid,
        summed.gpu_instance_id,
        summed.hour_start_at,
        least(run.end_at, summed.hour_start_at + interval 1 hour) as end_at,
        run.start_at,
        run.node_name,
        run.gpu_index,
        run.gpu_device,
        run.gpu_model,
        run.gpu_instance_profile,
        run.pci_bus_id,
        run.driver_version,
        run.make
    from summed
    inner join day.device_run as run
        on
            summed.cluster = run.cluster
            and summed.device_uuid = run.device_uuid
            and summed.gpu_instance_id = run.gpu_instance_id
            and run.start_at < summed.hour_start_at + interval 1 hour
            and run.end_at > summed.hour_start_at
),

-- What the labels said last in the hour, each for itself: an exporter that leaves a label out takes nothing from one that has it.
labelled as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        hour_start_at,
        arg_max(node_name, (end_at, start_at, node_name)) filter (where node_name != '') as node_name,
        arg_max(gpu_index, (end_at, start_at, gpu_index)) filter (where gpu_index != '') as gpu_index,
        arg_max(gpu_device, (end_at, start_at, gpu_device)) filter (where gpu_device != '') as gpu_device,
        arg_max(gpu_model, (end_at, start_at, gpu_model)) filter (where gpu_model != '') as gpu_model,
        arg_max(gpu_instance_profile, (end_at, start_at, gpu_instance_profile)) filter (where gpu_instance_profile != '') as gpu_instance_profile,
        arg_max(pci_bus_id, (end_at, start_at, pci_bus_id)) filter (where pci_bus_id != '') as pci_bus_id,
        arg_max(driver_version, (end_at, start_at, driver_version)) filter (where driver_version != '') as driver_version,
        arg_max(make, (end_at, start_at, make)) filter (where make != '') as make
    from run
    group by all
)

select
    summed.*,
    coalesce(event.event_count, if(summed.xid_seen_seconds is null, null, 0)) as xid_event_count,
    coalesce(event.codes, if(summed.xid_seen_seconds is null, null, []::integer[])) as xid_codes,
    $memory_threshold_ratio::double as memory_threshold_ratio,
    coalesce(labelled.node_name, '') as node_name,
    coalesce(labelled.gpu_index, '') as gpu_index,
    coalesce(labelled.gpu_device, '') as gpu_device,
    coalesce(labelled.gpu_model, '') as gpu_model,
    coalesce(labelled.gpu_instance_profile, '') as gpu_instance_profile,
    coalesce(labelled.pci_bus_id, '') as pci_bus_id,
    coalesce(labelled.driver_version, '') as driver_version,
    coalesce(labelled.make, '') as make
from summed
left join labelled
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
left join event
    on
        summed.cluster = event.cluster
        and summed.device_uuid = event.device_uuid
        and summed.gpu_instance_id = event.gpu_instance_id
        and summed.hour_start_at = event.hour_start_at
