-- GPUs and MIG instances: identity, use, saturation, energy and health.
--
-- Only the gpu row has board figures (power, clocks, throttling, errors, PCIe, NVLink). Under MIG, the rows of the instances have memory and
-- activity.
--
-- grain:  cluster, device_uuid, gpu_instance_id
-- reads:  facts.container_day, facts.ownership, period.device_power, period.figure, period.holder_day, period.link, period.sum
-- params: since_at, until_at, figure_min_coverage_ratio
-- source: period.figure; energy: DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION
-- columns: those of report.container_saturation without namespace, pod, pod_uid, container, sharing_mode, sharing_evidence, scope, throttle_scope,
--          memory_scope, gpu_util_seen_seconds; kind, gpu_index, gpu_instance_profile, pci_bus_id, driver_version, nvlink_source, energy_joules,
--          energy_method, corrected_sample_count, corrected_joules, idle_joules, attributed_joules, unattributed_joules, closing_error_joules,
--          counter_joules, integral_joules, counter_difference_joules, power_watts_avg, power_watts_max, power_limit_watts_max, gpu_temp_celsius_avg,
--          gpu_temp_celsius_max, memory_temp_celsius_avg, memory_temp_celsius_max, sm_clock_hertz_avg, sm_clock_hertz_max, memory_clock_hertz_avg,
--          memory_clock_hertz_max, pcie_replay_count, memory_total_bytes, power_seen_seconds, energy_seen_seconds, unallocated_seconds, source_metrics
--   kind                                gpu, or mig for an instance
--   observed_seconds                    s in which the device was observed
--   coverage_ratio                      time with data over the window's length, at most 1: in an hour that the window cuts, all data counts
--   nvlink_source                       source of the NVLink capacity: configuration or data sheet (of all links); '' for neither
--   energy_joules                       J, growth of the energy counter, gaps included; else power integrated over time
--   idle_joules                         J of the idle baseline, allocated or not
--   counter_joules                      J, growth of the energy counter where power is also known, without gaps
--   integral_joules                     J, power integrated over the time of counter_joules
--   power_watts_avg                     W, mean power
--   memory_total_bytes                  total memory in bytes
with total as (
    select
        *,
        gpu_instance_id != '' as is_instance,
        gpu_instance_id = '' and bool_or(gpu_instance_id != '') over (partition by cluster, device_uuid) as is_split,
        if(gpu_instance_id != '', 'board_scope', 'not_collected') as board_reason
    from period.sum
    where subject = 'device'
),

-- Time with any holder, within the hours of the window, and in proportion the time with data of each day. Holders of a shared device are not added up.
owned as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        start_at::date as day,
        greatest(start_at, date_trunc('hour', $since_at)) as begun_at,
        least(end_at, date_trunc('hour', $until_at - interval 1 millisecond) + interval 1 hour) as ended_at,
        max(ended_at) over (
            partition by cluster, device_uuid, gpu_instance_id, day
            order by begun_at, ended_at
            rows between unbounded preceding and 1 preceding
        ) as covered_until_at
    from facts.ownership
    where begun_at < ended_at
),

seen as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day)$'),
        sum(observed_seconds) as seconds
    from facts.container_day
    group by all
),

daily as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|day)$'),
        sum(overlap_ms(begun_at, ended_at, coalesce(covered_until_at, begun_at), ended_at)) / 1000
        * least(1, any_value(seen.seconds) / (sum(epoch_ms(ended_at - begun_at)) / 1000)) as held_seconds
    from owned
    inner join seen
        using (cluster, device_uuid, gpu_instance_id, day)
    group by all
),

allocated as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        sum(held_seconds) as held_seconds
    from daily
    group by all
),

-- Days on which a device is in use but its series name no pod.
unnamed as (
    select
        cluster,
        device_uuid,
        max(cause) as cause
    from period.holder_day
    where lacking_seconds > 0
    group by cluster, device_uuid
),

judged as (
    select
        *,
        why_unknown(
            columns('^(power|gpu_temp|memory_temp|sm_clock|memory_clock)_seen_seconds$'), board_reason, null, $figure_min_coverage_ratio * device_seconds
        ) as '\1_reason'
    from total
),

-- Energy and counts are sums that include gaps, and limits and memory size rarely change: these columns need no minimum coverage.
health as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|(board|power|gpu_temp|memory_temp|sm_clock|memory_clock)_reason)$'),
        -- Without a counter, energy is power over the time with data: with low coverage it is not the energy of the day.
        if(
            power.is_implausible and gpu_instance_id = '', 'implausible', if(energy_joules is null and energy_gap_joules is null, power_reason, null)
        ) as energy_reason,
        case when power_reason is null then power_joules / power_seen_seconds end as power_watts_avg,
        case when power_reason is null then power_watts_max end as power_watts_max,
        power_limit_watts_max,
        case when gpu_temp_reason is null then gpu_temp_celsius_seconds / gpu_temp_seen_seconds end as gpu_temp_celsius_avg,
        case when gpu_temp_reason is null then gpu_temp_celsius_max end as gpu_temp_celsius_max,
        case when memory_temp_reason is null then memory_temp_celsius_seconds / memory_temp_seen_seconds end as memory_temp_celsius_avg,
        case when memory_temp_reason is null then memory_temp_celsius_max end as memory_temp_celsius_max,
        case when sm_clock_reason is null then sm_clock_hertz_seconds / sm_clock_seen_seconds end as sm_clock_hertz_avg,
        case when sm_clock_reason is null then sm_clock_hertz_max end as sm_clock_hertz_max,
        case when memory_clock_reason is null then memory_clock_hertz_seconds / memory_clock_seen_seconds end as memory_clock_hertz_avg,
        case when memory_clock_reason is null then memory_clock_hertz_max end as memory_clock_hertz_max,
        if(
            pcie_replay_count is null and pcie_replay_gap_count is null,
            null,
            coalesce(pcie_replay_count, 0) + coalesce(pcie_replay_gap_count, 0)
        ) as pcie_replay_count,
        fb_total_bytes_max as memory_total_bytes
    from judged
    left join period.device_power as power
        using (cluster, device_uuid)
)

select
    figure.* similar to '^(cluster|device_uuid|gpu_instance_id)$',
    if(total.is_instance, 'mig', 'gpu') as kind,
    total.* similar to '^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version)$',
    figure.observed_seconds,
    -- Facts are hourly: in an hour that the window cuts, data may cover more than the window; the ratio is then 1.
    least(1, figure.observed_seconds / epoch($until_at::timestamp - $since_at::timestamp)) as coverage_ratio,
    figure.* similar to '^(gpu_usage_avg|[^g].*_(ratio|avg|max|count|codes))$',
    coalesce(link.nvlink_source, '') as nvlink_source,
    figure.any_throttle_ratio_min,
    if(health.energy_reason is null, power.measured_joules, null) as energy_joules,
    coalesce(power.energy_method, 'none') as energy_method,
    power.* similar to '^corrected_(sample_count|joules)$',
    if(health.energy_reason is null, columns('^(idle|attributed|unattributed|closing_error)_joules$'), null) as "\0",
    power.* similar to '^(counter|integral)_joules$',
    round(power.counter_joules - power.integral_joules, 6) as counter_difference_joules,
    health.* similar to '^power_(limit_)?watts_(avg|max)$',
    figure.gpu_util_ratio_avg,
    health.* similar to '^(.*_(celsius|hertz)_(avg|max)|pcie_replay_count|memory_total_bytes)$',
    figure.* similar to '^(gpu_usage_seen|[^dglo].*|dram.*|low_.*)_seconds$',
    coalesce(total.power_seen_seconds, 0) as power_seen_seconds,
    coalesce(total.energy_seen_seconds, 0) as energy_seen_seconds,
    if(total.is_split or unnamed.cause is not null, null, round(greatest(0, figure.observed_seconds - coalesce(allocated.held_seconds, 0)), 6)) as unallocated_seconds,
    coalesce(figure.source_metrics, map_from_entries([])) as source_metrics,
    map_concat(
        figure.unknown_reasons,
        unknown_reasons([
            ('unallocated_seconds', if(total.is_split, 'instance_scope', unnamed.cause)),
            ('energy_joules', health.energy_reason),
            ('corrected_joules', if(power.corrected_joules is null, coalesce(health.energy_reason, 'older_facts'), null)),
            ('idle_joules', coalesce(health.energy_reason, case
                when power.measured_joules is null then health.board_reason
                when power.idle_joules is null then 'idle_unknown'
            end)),
            ('corrected_sample_count', if(power.corrected_sample_count is null, health.board_reason, null)),
            ('counter_joules', if(power.counter_joules is null, health.board_reason, null)),
            ('integral_joules', if(power.integral_joules is null, health.board_reason, null)),
            ('counter_difference_joules', if(power.integral_joules is null, health.board_reason, null)),
            ('power_limit_watts_max', if(health.power_limit_watts_max is null, health.board_reason, null)),
            ('pcie_replay_count', if(health.pcie_replay_count is null, health.board_reason, null)),
            ('memory_total_bytes', case
                when health.memory_total_bytes is null then if(total.is_split, 'instance_scope', 'not_collected')
            end)
        ] || [
            (name, coalesce(health.energy_reason, if(power.measured_joules is null, health.board_reason, null)))
            for name in ['attributed_joules', 'unattributed_joules', 'closing_error_joules']
        ] || flatten([[(pair.key || '_avg', pair.value), (pair.key || '_max', pair.value)] for pair in map_entries(map {
            'power_watts': health.power_reason, 'gpu_temp_celsius': health.gpu_temp_reason, 'memory_temp_celsius': health.memory_temp_reason,
            'sm_clock_hertz': health.sm_clock_reason, 'memory_clock_hertz': health.memory_clock_reason
        })]))
    ) as unknown_reasons
from period.figure as figure
inner join total
    using (cluster, device_uuid, gpu_instance_id)
inner join health
    using (cluster, device_uuid, gpu_instance_id)
left join period.device_power as power
    on
        figure.cluster = power.cluster
        and figure.device_uuid = power.device_uuid
        and figure.gpu_instance_id = ''
left join period.link as link
    on
        figure.cluster = link.cluster
        and figure.device_uuid = link.device_uuid
        and figure.gpu_instance_id = ''
left join allocated
    using (cluster, device_uuid, gpu_instance_id)
left join unnamed
    using (cluster, device_uuid)
where figure.subject = 'device'
