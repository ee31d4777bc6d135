-- Energy of each container on each of its devices per UTC day: facts.power_hour added over hours.
--
-- Each combination of methods has its own row.
--
-- revision: 14
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, day, idle_source, hours_method, method, scope
-- reads:  facts.container_hour, facts.device_power_hour, facts.power_hour
-- params: since_at, until_at
-- columns: those of facts.power_hour without hour_start_at, idle_watts; day, used_gpu_seconds, use_known_gpu_seconds, known_gpu_seconds, sm_active_gpu_seconds,
--          sm_active_joules, corrected_joules, idle_watt_seconds, idle_watts_seconds, active_known_count, idle_known_count
--   used_gpu_seconds      gpu_seconds x activity of the holder's part; null where no activity is known
--   use_known_gpu_seconds gpu_seconds with known activity
with hour as (
    select
        power.*,
        power.gpu_seconds * coalesce(
            activity.gr_engine_active_ratio_seconds / activity.gr_engine_active_seen_seconds,
            -- A board's utilization is not known by instance.
            if(power.gpu_instance_id = '', activity.gpu_util_ratio_seconds / activity.gpu_util_seen_seconds, null)
        ) as used_gpu_seconds,
        if(used_gpu_seconds is null, null, power.gpu_seconds) as use_known_gpu_seconds,
        power.measured_seconds * coalesce(power.gpu_seconds / nullif(power.observed_seconds, 0), 1) as known_gpu_seconds,
        known_gpu_seconds * activity.sm_active_ratio_seconds / activity.sm_active_seen_seconds as sm_active_gpu_seconds,
        if(sm_active_gpu_seconds is null, null, power.active_joules) as sm_active_joules,
        (power.active_joules + power.allocated_idle_joules + coalesce(power.idle_joules, 0))
        * coalesce(device.corrected_joules / nullif(device.measured_joules, 0), device.corrected_joules) as corrected_joules
    from facts.power_hour as power
    left join facts.device_power_hour as device
        using (cluster, device_uuid, hour_start_at)
    left join facts.container_hour as activity
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at)
    where is_in_period(power.hour_start_at, $since_at, $until_at)
    order by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
)

select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
    hour_start_at::date as day,
    columns('^(idle_source|hours_method|method|scope)$'),
    sum(columns('_(seconds|joules)$|^active_joules_')),
    max(active_watts_max) as active_watts_max,
    sum(clamped_count)::bigint as clamped_count,
    sum(idle_watts * observed_seconds) as idle_watt_seconds,
    sum(if(idle_watts is null, null, observed_seconds)) as idle_watts_seconds,
    count(active_joules) as active_known_count,
    count(idle_joules) as idle_known_count
from hour
group by all
