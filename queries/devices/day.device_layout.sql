-- MIG layout of each GPU and hour; a GPU without MIG instances has no row.
--
-- An hour in which the partitioning changed has a layout of its own: the instances of both.
--
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  day.device_run
-- source: label runs of MIG instances (GPU_I_ID, GPU_I_PROFILE)
-- columns:
--   layout  profiles of its instances, sorted, each as often as it occurs; an unknown profile is ?
with instance_hour as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        max(gpu_instance_profile) as gpu_instance_profile,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from day.device_run
    where gpu_instance_id != ''
    group by cluster, device_uuid, gpu_instance_id, start_at, end_at
),

instance as (
    select
        * exclude (gpu_instance_profile),
        coalesce(nullif(max(gpu_instance_profile), ''), '?') as profile
    from instance_hour
    group by cluster, device_uuid, gpu_instance_id, hour_start_at
)

select
    columns('^(cluster|device_uuid|hour_start_at)$'),
    string_agg(profile, ',' order by profile) as layout
from instance
group by cluster, device_uuid, hour_start_at
