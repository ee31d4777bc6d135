-- Sums of each device per UTC day: facts.device_hour added over hours.
--
-- Each set of labels of the device on the day has its own row.
--
-- revision: 3
-- grain:  cluster, device_uuid, gpu_instance_id, day, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  facts.device_hour
-- params: since_at, until_at
-- columns: those of facts.device_hour without hour_start_at, memory_threshold_ratio; day, active_seconds, board_observed_seconds, first_hour_at, last_hour_at
--   active_seconds          s with activity: in each hour the larger of engine activity and GPU utilization
with hour as (
    select
        *,
        greatest(coalesce(gr_engine_active_ratio_seconds, 0), coalesce(gpu_util_ratio_seconds, 0)) as active_seconds,
        -- In the order of hours, so that sums of a day are always the same.
        if(
            gpu_instance_id = min(gpu_instance_id) over board,
            coalesce(max(observed_seconds) filter (where gpu_instance_id = '') over board, max(observed_seconds) over board),
            null
        ) as board_observed_seconds
    from facts.device_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    window board as (partition by cluster, device_uuid, hour_start_at)
    order by cluster, device_uuid, gpu_instance_id, hour_start_at
)

select
    columns('^(cluster|device_uuid|gpu_instance_id)$'),
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
