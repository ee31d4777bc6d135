-- Power of each unallocated GPU per hour: seconds per whole watt, by MIG layout.
--
-- revision: 3
-- grain:  cluster, device_uuid, layout, hour_start_at, bin_watts
-- reads:  day.device_layout, day.device_run, day.idle_power
-- source: DCGM_FI_DEV_POWER_USAGE outside facts.ownership
-- columns: cluster, device_uuid, layout, hour_start_at, bin_watts, idle_seconds, gpu_model
--   idle_seconds  s at this power
with model as (
    select
        columns('^(cluster|device_uuid)$'),
        max(gpu_model) as gpu_model
    from day.device_run
    group by cluster, device_uuid
)

select
    free.cluster,
    free.device_uuid,
    coalesce(device_layout.layout, '') as layout,
    free.* similar to '^(hour_start_at|bin_watts|idle_seconds)$',
    coalesce(model.gpu_model, '') as gpu_model
from day.idle_power as free
left join day.device_layout
    using (cluster, device_uuid, hour_start_at)
left join model
    using (cluster, device_uuid)
