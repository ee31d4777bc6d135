-- MIG instances, allocated or not, of each interval of a GPU that is split by activity, and their shares.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.allocated_interval, day.partition_interval, day.power_interval, day.sharer_series, facts.device_hour
-- source: DCGM_FI_PROF_GR_ENGINE_ACTIVE, DCGM_FI_PROF_SM_ACTIVE of the instances
-- columns:
--   instance_number           number of the row, in order of the intervals
--   interval_number           interval_number of day.power_interval
--   instance_owner_count      number of holders; 0 for an instance without a holder
--   has_util                  whether several holders share it by their own utilization
--   signal                    activity signal that counts: engine, sm or none
--   slice_share_ratio         its part of all compute slices of allocated instances
--   equal_share_ratio         number of its holders divided by all holders of the GPU
--   idle_share_ratio          its part of the whole GPU's idle energy
with instance_hour as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at|gpu_instance_profile|gpu_model)$'),
        gr_engine_active_seen_seconds is not null as has_engine,
        sm_active_seen_seconds is not null as has_sm,
        coalesce(gr_engine_active_ratio_seconds, 0) as engine_ratio_seconds,
        coalesce(sm_active_ratio_seconds, 0) as sm_ratio_seconds
    from facts.device_hour
    where gpu_instance_id != ''
),

choice as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        case
            when bool_and(has_engine) and (sum(engine_ratio_seconds) > 0 or sum(sm_ratio_seconds) = 0) then 'engine'
            when bool_and(has_sm) then 'sm'
            when bool_or(has_engine) then 'engine'
            when bool_or(has_sm) then 'sm'
            else 'none'
        end as signal
    from instance_hour
    group by cluster, device_uuid, hour_start_at
),

holder as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        count(*) as instance_owner_count
    from day.allocated_interval
    group by cluster, device_uuid, gpu_instance_id, start_at
),

named as (
    select columns('^(interval_number|gpu_instance_id)$')
    from day.power_interval
    inner join holder
        using (cluster, device_uuid, start_at)
    where share = 'activity'
    union by name
    select columns('^(interval_number|gpu_instance_id)$')
    from day.power_interval
    inner join instance_hour
        using (cluster, device_uuid, hour_start_at)
    where share = 'activity'
),

placed as (
    select
        power.*,
        named.gpu_instance_id,
        coalesce(holder.instance_owner_count, 0) as instance_owner_count,
        (power.cluster, power.device_uuid, named.gpu_instance_id, power.start_at) in (
            select (series.cluster, series.device_uuid, series.gpu_instance_id, series.start_at)
            from day.sharer_series as series
        ) as has_util,
        coalesce(part.profile, instance_hour.gpu_instance_profile, '') as profile,
        compute_slices(profile) as slice_count,
        coalesce(part.part_ratio, partition_ratio(profile, coalesce(instance_hour.gpu_model, ''))) as part_ratio,
        coalesce(choice.signal, 'none') as signal
    from named
    inner join day.power_interval as power
        using (interval_number)
    left join holder
        using (cluster, device_uuid, gpu_instance_id, start_at)
    left join day.partition_interval as part
        using (cluster, device_uuid, gpu_instance_id, hour_start_at, start_at)
    left join instance_hour
        using (cluster, device_uuid, gpu_instance_id, hour_start_at)
    left join choice
        using (cluster, device_uuid, hour_start_at)
    -- Instances of other times in the hour do not belong to the interval, nor do series of compute instances alone.
    where holder.start_at is not null or (part.profile != '' and part.part_ratio > 0) or coalesce(instance_hour.gpu_instance_profile, '') = ''
)

select
    cluster,
    row_number() over (order by interval_number, gpu_instance_id)::uinteger as instance_number,
    placed.* similar to '^(device_uuid|gpu_instance_id|interval_number|hour_start_at|start_at|end_at|instance_owner_count|slice_count|has_util|signal)$',
    if(instance_owner_count > 0, slice_count / sum(if(instance_owner_count > 0, slice_count, 0)) over same_interval, 0) as slice_share_ratio,
    instance_owner_count / owner_count as equal_share_ratio,
    if(instance_owner_count > 0, least(1, part_ratio), 0) as allocated_part_ratio,
    -- If a GPU has more instances than parts, their parts are scaled to the whole GPU.
    allocated_part_ratio / greatest(1, round(sum(allocated_part_ratio) over same_interval, 9)) as idle_share_ratio
from placed
window same_interval as (partition by interval_number)
