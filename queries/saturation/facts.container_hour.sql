-- Sums of each container's devices per hour while it held them.
--
-- Every owner of a shared device sees the device's figures (scope device). Of a MIG instance, memory and activity are
-- the instance's own, power, clocks, throttling and errors the board's.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.interval_saturation, day.ownership_interval, facts.device_hour, facts.ownership
-- params: memory_threshold_ratio
-- source: facts.device_hour and day.interval_saturation over facts.ownership
-- columns:
--   cluster                             cluster name
--   namespace                           workload namespace
--   pod                                 workload pod
--   pod_uid                             its uid; '' where unknown
--   container                           workload container
--   device_uuid                         UUID of the physical GPU
--   gpu_instance_id                     MIG instance; '' for the whole GPU
--   hour_start_at                       UTC, start of the hour
--   sharing_mode                        as in facts.ownership; the least exclusive of the hour
--   sharing_evidence                    what that is read from
--   certainty                           certain, inferred or ambiguous; the least certain of the hour
--   scope                               device: the figures are the device's, not the container's share
--   observed_seconds                    s in which the device was seen at all
--   sample_count                        scrapes, carried rows left out
--   fb_used_seen_seconds                s in which memory in use was known
--   fb_used_byte_seconds                s x bytes of memory in use
--   memory_seen_seconds                 s in which used / (used + free) was known
--   memory_used_ratio_seconds           s x used / (used + free)
--   memory_pressure_seconds             s with used / (used + free) at or above the threshold
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
--   power_seen_seconds                  s in which power was known
--   power_joules                        J, power integrated over the seconds in which it was known
--   energy_seen_seconds                 s over which the growth of the energy counter is known
--   energy_joules                       J, growth of the energy counter over those seconds
--   energy_gap_joules                   J, growth of the energy counter over gaps and resets that ended here
--   gpu_util_seen_seconds               s in which GPU utilisation was known
--   gpu_util_ratio_seconds              s x share of time with a kernel running
--   mem_copy_util_seen_seconds          s in which memory copy utilisation was known
--   mem_copy_util_ratio_seconds         s x share of time with memory being copied
--   gpu_temp_seen_seconds               s in which GPU temperature was known
--   gpu_temp_celsius_seconds            s x degrees Celsius of the GPU
--   memory_temp_seen_seconds            s in which memory temperature was known
--   memory_temp_celsius_seconds         s x degrees Celsius of the memory
--   sm_clock_seen_seconds               s in which SM clock was known
--   sm_clock_hertz_seconds              s x Hz of the SM clock
--   memory_clock_seen_seconds           s in which memory clock was known
--   memory_clock_hertz_seconds          s x Hz of the memory clock
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
--   energy_sample_count                 rows that carry the energy counter
--   power_violation_sample_count        rows that carry the power violation counter
--   thermal_violation_sample_count      rows that carry the thermal violation counter
--   sync_boost_violation_sample_count   rows that carry the sync boost violation counter
--   board_limit_violation_sample_count  rows that carry the board limit violation counter
--   pcie_replay_sample_count            rows that carry the PCIe replay counter
--   fb_used_bytes_max                   largest memory in use
--   fb_total_bytes_max                  largest memory in all; used + free + reserved where the total is not published
--   memory_used_ratio_max               largest used / (used + free) of one instant
--   sm_active_ratio_max                 largest SM activity
--   dram_active_ratio_max               largest memory bandwidth activity
--   power_watts_max                     largest power
--   power_limit_watts_max               largest enforced power limit
--   gpu_temp_celsius_max                largest GPU temperature
--   memory_temp_celsius_max             largest memory temperature
--   sm_clock_hertz_max                  largest SM clock
--   memory_clock_hertz_max              largest memory clock
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
with stretch as (
    -- Every span with a constant set of owners: the hours without a change, and the pieces of the others.
    select
        hour.* exclude (
            node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make, memory_threshold_ratio
        ),
        hour.hour_start_at as start_at,
        hour.hour_start_at + interval 1 hour as end_at
    from facts.device_hour as hour
    semi join facts.ownership as owner
        on
            hour.cluster = owner.cluster
            and hour.device_uuid = owner.device_uuid
            and hour.hour_start_at < owner.end_at
            and hour.hour_start_at + interval 1 hour > owner.start_at
    anti join day.ownership_interval
        using (cluster, device_uuid, hour_start_at)
    union all by name
    select *
    from day.interval_saturation
),

span as (
    select distinct
        cluster,
        device_uuid,
        hour_start_at,
        start_at,
        end_at
    from stretch
),

-- What a MIG instance has of its own, and what is its board's.
own as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        start_at,
        observed_seconds,
        sample_count,
        columns('^(fb|memory_(seen|used|pressure)|gr_engine|sm_(active|occupancy)|tensor|fp[0-9]+|dram)_')
    from stretch
),

board as (
    select
        cluster,
        device_uuid,
        start_at,
        observed_seconds,
        sample_count,
        xid_event_count,
        xid_codes,
        columns(
            lambda name: regexp_matches(name, '_(seconds|joules|bytes|max)$|_(gap|replay|sample)_count$')
            and not regexp_matches(name, '^(fb|memory_(seen|used|pressure)|gr_engine|sm_(active|occupancy)|tensor|fp[0-9]+|dram)_|^(observed|inactive|effective|ineffective|busy|untold)_seconds$')
        )
    from stretch
    where gpu_instance_id = ''
),

labelled as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        hour_start_at,
        columns('^(node_name|gpu_(index|device|model|instance_profile)|pci_bus_id|driver_version|make)$')
    from facts.device_hour
),

-- Cut wherever owners change: a span that overlaps a run lies within it.
held as (
    select
        ownership.cluster,
        ownership.namespace,
        ownership.pod,
        ownership.pod_uid,
        ownership.container,
        ownership.device_uuid,
        ownership.gpu_instance_id,
        ownership.certainty,
        ownership.sharing_mode,
        ownership.sharing_evidence,
        span.hour_start_at,
        span.start_at
    from facts.ownership
    inner join span
        on
            ownership.cluster = span.cluster
            and ownership.device_uuid = span.device_uuid
            and ownership.start_at < span.end_at
            and ownership.end_at > span.start_at
)

select
    held.cluster,
    held.namespace,
    held.pod,
    held.pod_uid,
    held.container,
    held.device_uuid,
    held.gpu_instance_id,
    held.hour_start_at,
    -- The least exclusive mode of the hour: 'exclusive' < 'mig' < 'mps' < 'shared-claim' < 'time-sliced' < 'time-sliced?', as letters.
    max(held.sharing_mode) as sharing_mode,
    arg_max(held.sharing_evidence, held.sharing_mode) as sharing_evidence,
    min_by(held.certainty, list_position(['ambiguous', 'inferred', 'certain'], held.certainty)) as certainty,
    'device' as scope,
    sum(coalesce(own.observed_seconds, board.observed_seconds)) as observed_seconds,
    sum(coalesce(own.sample_count, board.sample_count))::bigint as sample_count,
    sum(columns('^[^o].*_(seconds|joules|bytes)$|_replay(_gap)?_count$')) as "\0",
    sum(columns('._sample_count$'))::bigint as "\0",
    max(columns('_max$')) as "\0",
    sum(board.xid_event_count)::bigint as xid_event_count,
    list_sort(list_distinct(flatten(list(board.xid_codes) filter (where board.xid_codes is not null)))) as xid_codes,
    $memory_threshold_ratio::double as memory_threshold_ratio,
    coalesce(any_value(labelled.node_name), '') as node_name,
    coalesce(any_value(labelled.gpu_index), '') as gpu_index,
    coalesce(any_value(labelled.gpu_device), '') as gpu_device,
    coalesce(any_value(labelled.gpu_model), '') as gpu_model,
    coalesce(any_value(labelled.gpu_instance_profile), '') as gpu_instance_profile,
    coalesce(any_value(labelled.pci_bus_id), '') as pci_bus_id,
    coalesce(any_value(labelled.driver_version), '') as driver_version,
    coalesce(any_value(labelled.make), '') as make
from held
left join own
    using (cluster, device_uuid, gpu_instance_id, start_at)
left join board
    using (cluster, device_uuid, start_at)
left join labelled
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
where own.start_at is not null or board.start_at is not null
group by
    held.cluster, held.namespace, held.pod, held.pod_uid, held.container,
    held.device_uuid, held.gpu_instance_id, held.hour_start_at
