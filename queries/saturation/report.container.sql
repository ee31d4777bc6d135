-- Saturation, memory and energy of each container over all of its devices.
--
-- Activity, memory averages and shares of a link are means weighted by time (null where any device's is unknown). _max, throttling, violation and
-- pressure are maxima, XID errors and bytes per second sums, XID codes the union.
--
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  facts.ownership, period.figure, period.life
-- parts:  100000 rows of period.figure by cluster, namespace, pod
-- params: since_at, until_at
-- source: period.figure; times of holding: facts.ownership
-- columns: those of report.container_saturation without device_uuid, gpu_instance_id; device_count, device_seconds
--   observed_seconds                    s in which any of its devices had data while allocated
--   device_seconds                      s in which its devices had data, added over devices
--   device_count                        devices and MIG instances allocated to it
with total as (
    from period.figure
    where subject = 'container'
),

part as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        count(*) as device_count,
        max(device_seconds) as longest_seconds,
        max(columns('_(ratio|max|ratio_min)$')),
        if(count(xid_error_count) = count(*), sum(xid_error_count)::bigint, null) as xid_error_count,
        if(count(xid_codes) = count(*), list_sort(list_distinct(flatten(list(xid_codes)))), null) as xid_codes,
        if(count(columns('_per_second_avg$')) = count(*), sum(columns('_per_second_avg$')), null) as "\0",
        if(count(pcie_tx_ratio_avg) = count(*), sum(pcie_tx_ratio_avg * pcie_tx_seen_seconds) / sum(pcie_tx_seen_seconds), null) as pcie_tx_ratio_avg,
        if(count(pcie_rx_ratio_avg) = count(*), sum(pcie_rx_ratio_avg * pcie_rx_seen_seconds) / sum(pcie_rx_seen_seconds), null) as pcie_rx_ratio_avg,
        if(count(nvlink_tx_ratio_avg) = count(*), sum(nvlink_tx_ratio_avg * nvlink_tx_seen_seconds) / sum(nvlink_tx_seen_seconds), null) as nvlink_tx_ratio_avg,
        if(count(nvlink_rx_ratio_avg) = count(*), sum(nvlink_rx_ratio_avg * nvlink_rx_seen_seconds) / sum(nvlink_rx_seen_seconds), null) as nvlink_rx_ratio_avg,
        list_sort(list_distinct(list(reasons_code))) as device_reasons
    from period.figure
    semi join total
        using (cluster, namespace, pod, pod_uid, container)
    where subject = 'container_device'
    group by all
),

-- Most containers have one device, with its figures.
figure as (
    select
        *,
        1 as device_count,
        [reasons_code] as device_reasons
    from period.figure
    anti join total
        using (cluster, namespace, pod, pod_uid, container)
    where subject = 'container_device'
    union all by name
    select
        total.* similar to '^(cluster|namespace|pod|pod_uid|container|reasons_code|gpu_device|gpu_model|node_name|sharing_.*|.*_seconds|(gpu_usage|gpu_util_ratio|memory_used_ratio|dram_active|sm_active|sm_occupancy|tensor_active)_avg)$',
        part.* exclude (cluster, namespace, pod, pod_uid, container)
    from total
    inner join part
        using (cluster, namespace, pod, pod_uid, container)
),

-- Most rows have the same few reasons: each combination of the container's and its devices' reasons is computed once.
combination as (
    select distinct
        reasons_code,
        device_reasons
    from figure
),

reason_set as (
    select
        reasons_code,
        key as name,
        value as reason,
        regexp_matches(name, '^(gpu_usage|gpu_util_ratio|memory_used_ratio|dram_active|sm_active|sm_occupancy|tensor_active)_avg$|_seconds$') as is_mean,
        regexp_matches(name, '^xid_|_per_second_avg$|^(pcie|nvlink)_.*_ratio_avg$') as is_sum
    from (
        select
            reasons_code,
            unnest(map_entries(unknown_reasons), recursive := true)
        from (
            select
                reasons_code,
                any_value(unknown_reasons) as unknown_reasons
            from period.figure
            group by reasons_code
        ) as each_set
    ) as each_reason
),

-- A mean has the container's reason. A maximum is unknown if it is unknown for each device, a sum if for any: of several reasons
-- the first alphabetically. A sum that lacks some devices has its own reason.
explained as (
    select
        combination.*,
        reason_set.name,
        reason_set.reason
    from combination
    inner join reason_set
        using (reasons_code)
    where reason_set.is_mean
    union all by name
    select
        each_device.reasons_code,
        each_device.device_reasons,
        reason_set.name,
        case when count(*) = len(each_device.device_reasons) then min(reason_set.reason) when reason_set.is_sum then 'partial_devices' end as reason
    from (
        select
            *,
            unnest(device_reasons) as number
        from combination
    ) as each_device
    inner join reason_set on each_device.number = reason_set.reasons_code
    where not reason_set.is_mean
    group by each_device.reasons_code, each_device.device_reasons, reason_set.name, reason_set.is_sum
),

found as (
    select
        combination.reasons_code,
        combination.device_reasons,
        unknown_reasons(list((explained.name, explained.reason) order by explained.name)) as unknown_reasons
    from combination
    left join explained
        using (reasons_code, device_reasons)
    group by combination.reasons_code, combination.device_reasons
),

-- Kubernetes names holders without telemetry too: data of the devices counts, in proportion for time in which several were held at once.
followed as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        greatest(start_at, date_trunc('hour', $since_at)) as begun_at,
        least(end_at, date_trunc('hour', $until_at - interval 1 millisecond) + interval 1 hour) as ended_at,
        max(ended_at) over (
            partition by cluster, namespace, pod, pod_uid, container
            order by begun_at, ended_at
            rows between unbounded preceding and 1 preceding
        ) as covered_until_at
    from facts.ownership
    where begun_at < ended_at
),

-- Holders with no time are left out: few rows are expected, and joins keep these narrow rows in memory, not the wide figures.
united as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        sum(overlap_ms(begun_at, ended_at, coalesce(covered_until_at, begun_at), ended_at)) / sum(epoch_ms(ended_at) - epoch_ms(begun_at)) as once_ratio
    from followed
    group by all
    having sum(epoch_ms(ended_at) - epoch_ms(begun_at)) > 0
),

life as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        (epoch_ms(max(end_at)) - epoch_ms(min(start_at))) / 1000 as lifetime_seconds
    from period.life
    group by all
    having lifetime_seconds > 0
)

select
    figure.* similar to '^(cluster|namespace|pod|pod_uid|container)$',
    greatest(figure.longest_seconds, figure.device_seconds * united.once_ratio) as observed_seconds,
    greatest(figure.longest_seconds, figure.device_seconds * united.once_ratio) / life.lifetime_seconds as coverage_ratio,
    figure.* similar to '^(gpu_usage|gpu_util_ratio|memory_used_ratio|dram_active|sm_active|sm_occupancy|tensor_active)_avg$',
    figure.device_count,
    figure.* similar to '.*_(ratio|max|ratio_min)$',
    figure.xid_error_count,
    figure.xid_codes,
    figure.* similar to '.*_per_second_avg$|^(pcie|nvlink)_.*_ratio_avg$',
    figure.* similar to '^(gpu_device|gpu_model|node_name|sharing_mode|sharing_evidence)$',
    'device' as scope,
    if(figure.sharing_mode = 'mig', 'board', 'device') as throttle_scope,
    if(figure.sharing_mode = 'mig', 'instance', 'device') as memory_scope,
    figure.* similar to '^([^dlo]|dram|low_).*_seconds$',
    figure.device_seconds,
    if(
        life.lifetime_seconds > 0,
        found.unknown_reasons,
        map_concat(found.unknown_reasons, map { 'coverage_ratio': 'lifetime_unknown' })
    ) as unknown_reasons
from figure
inner join found
    using (reasons_code, device_reasons)
left join united
    using (cluster, namespace, pod, pod_uid, container)
left join life
    using (cluster, namespace, pod, pod_uid, container)
