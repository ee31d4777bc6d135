-- Saturation, memory and energy of each container over all of its devices.
--
-- Mean weighted by time for activity, memory averages and shares of a link (null where any device's is unknown); maximum for
-- _max, throttling, violation and pressure; sum for XID errors and bytes per second; union for XID codes.
--
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  period.figure
-- source: period.figure
-- columns: those of report.container_saturation without device_uuid, gpu_instance_id; device_count, device_seconds
--   observed_seconds                    s in which any of its devices was seen while held
--   device_seconds                      s in which its devices were seen, added over devices
--   device_count                        devices and MIG instances that it held
with part as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        count(*) as device_count,
        max(columns('_(ratio|max|ratio_min)$')),
        if(count(xid_error_count) = count(*), sum(xid_error_count), null) as xid_error_count,
        if(count(xid_codes) = count(*), list_sort(list_distinct(flatten(list(xid_codes)))), null) as xid_codes,
        if(count(columns('_per_second_avg$')) = count(*), sum(columns('_per_second_avg$')), null) as "\0",
        if(count(pcie_tx_ratio_avg) = count(*), sum(pcie_tx_ratio_avg * pcie_tx_seen_seconds) / sum(pcie_tx_seen_seconds), null) as pcie_tx_ratio_avg,
        if(count(pcie_rx_ratio_avg) = count(*), sum(pcie_rx_ratio_avg * pcie_rx_seen_seconds) / sum(pcie_rx_seen_seconds), null) as pcie_rx_ratio_avg,
        if(count(nvlink_tx_ratio_avg) = count(*), sum(nvlink_tx_ratio_avg * nvlink_tx_seen_seconds) / sum(nvlink_tx_seen_seconds), null) as nvlink_tx_ratio_avg,
        if(count(nvlink_rx_ratio_avg) = count(*), sum(nvlink_rx_ratio_avg * nvlink_rx_seen_seconds) / sum(nvlink_rx_seen_seconds), null) as nvlink_rx_ratio_avg,
        list_sort(list_distinct(list(reasons_code))) as device_reasons
    from period.figure
    where subject = 'container_device'
    group by all
),

total as (
    from period.figure
    where subject = 'container'
),

-- Nearly all have the same few reasons: each combination of the container's own and its devices' is worked out once.
combination as (
    select distinct
        total.reasons_code,
        part.device_reasons
    from total
    inner join part
        using (cluster, namespace, pod, pod_uid, container)
),

said as (
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
            select distinct
                reasons_code,
                unknown_reasons
            from period.figure
        ) as each_set
    ) as each_reason
),

-- A mean has the container's reason. The largest of the devices is unknown where each device's is, a sum where any is: of several reasons
-- the first by letter, and of a sum that lacks some devices a reason of its own.
explained as (
    select
        combination.*,
        said.name,
        said.reason
    from combination
    inner join said
        using (reasons_code)
    where said.is_mean
    union all by name
    select
        each_device.reasons_code,
        each_device.device_reasons,
        said.name,
        case when count(*) = len(each_device.device_reasons) then min(said.reason) when said.is_sum then 'partial_devices' end as reason
    from (
        select
            *,
            unnest(device_reasons) as number
        from combination
    ) as each_device
    inner join said on each_device.number = said.reasons_code
    where not said.is_mean
    group by each_device.reasons_code, each_device.device_reasons, said.name, said.is_sum
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
)

select
    total.* similar to '^(cluster|namespace|pod|pod_uid|container|observed_seconds)$',
    total.observed_seconds / nullif(total.lifetime_seconds, 0) as coverage_ratio,
    total.* similar to '(gpu_usage|gpu_util_ratio|memory_used_ratio|dram_active|sm_active|sm_occupancy|tensor_active)_avg',
    part.* exclude (cluster, namespace, pod, pod_uid, container, device_reasons),
    total.* similar to '^(gpu_device|gpu_model|node_name|sharing_mode|sharing_evidence)$',
    'device' as scope,
    if(total.sharing_mode = 'mig', 'board', 'device') as throttle_scope,
    if(total.sharing_mode = 'mig', 'instance', 'device') as memory_scope,
    total.* similar to '^([^dlo]|dram).*_seconds$',
    total.device_seconds,
    if(
        coalesce(total.lifetime_seconds, 0) > 0,
        found.unknown_reasons,
        map_concat(found.unknown_reasons, map { 'coverage_ratio': 'lifetime_unknown' })
    ) as unknown_reasons
from total
inner join part
    using (cluster, namespace, pod, pod_uid, container)
inner join found
    using (reasons_code, device_reasons)
