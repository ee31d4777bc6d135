-- GPU-seconds of each hour by all states that decide the bucket: outage, allocation, reservation, pending demand, activity, SM activity.
--
-- A MIG instance counts by its compute slices, of 7 (4 on an A30). Slices without an instance are unsliced. Holders have their shares of a unit
-- (day.allocated_interval). Unused claims divide the remainder by their shares, or equally if these are unknown. The rest is free. The
-- free remainder of a partly allocated unit, and time reserved beside a holder, are inactive, except time without data. Hours are split at
-- changes of holders and of outages, so that each interval has one state. Activity is summed sample by sample (day.sample_sum).
--
-- revision: 10
-- grain:  cluster, device_uuid, gpu_instance_id, hour_start_at, outage, is_reserved, is_unsliced, stranding, activity, namespace, pod, pod_uid, hours_method
-- reads:  day.allocated_interval, day.device_outage, day.fragmented_gpu, day.interval_saturation, day.partition_interval, day.reservation, day.sample_sum, facts.claim_use
-- source: day.sample_sum, day.interval_saturation; slices by GPU_I_PROFILE
-- columns: cluster, device_uuid, hour_start_at, gpu_instance_id, is_unsliced, activity, outage, is_reserved, stranding, namespace, pod, pod_uid,
--          hours_method, gpu_seconds
with step as (
    select columns('^(cluster|device_uuid|gpu_instance_id|start_at|(observed|inactive|effective|ineffective|busy|unreported)_seconds)$')
    from day.sample_sum
    where is_whole_hour
    union all by name
    select columns('^(cluster|device_uuid|gpu_instance_id|start_at|(observed|inactive|effective|ineffective|busy|unreported)_seconds)$')
    from day.interval_saturation
),

gpu as (
    from day.partition_interval
    where gpu_instance_id = ''
),

whole as (
    select distinct columns('^(cluster|device_uuid|start_at)$')
    from day.partition_interval
    where lower(profile) in ('cpx', 'qpx', 'tpx', 'dpx')
),

unit as (
    select
        part.* exclude (end_at, gpu_model, profile, part_ratio, seen_seconds, due_seconds, gpu_ratio, gpu_seconds),
        least(1, part.seen_seconds / nullif(step.observed_seconds, 0)) as fit_ratio,
        unnest([
            { 'activity': 'inactive', 'seconds': part.gpu_ratio * fit_ratio * step.inactive_seconds },
            { 'activity': 'effective', 'seconds': part.gpu_ratio * fit_ratio * step.effective_seconds },
            { 'activity': 'ineffective', 'seconds': part.gpu_ratio * fit_ratio * step.ineffective_seconds },
            { 'activity': 'busy', 'seconds': part.gpu_ratio * fit_ratio * step.busy_seconds },
            { 'activity': 'unreported', 'seconds': part.gpu_ratio * fit_ratio * step.unreported_seconds },
            { 'activity': 'unseen', 'seconds': part.gpu_seconds - part.gpu_ratio * coalesce(fit_ratio * step.observed_seconds, 0) }
        ], recursive := true)
    from day.partition_interval as part
    left join step
        using (cluster, device_uuid, gpu_instance_id, start_at)
    where not part.is_unsliced
    union all by name
    -- The rest of a partitioned GPU: activity belongs to its instances, so the rest has only time.
    -- AMD's modes leave no rest: a partition without series has no data (device-metrics-exporter 495).
    select
        gpu.* exclude (end_at, gpu_model, profile, part_ratio, seen_seconds, due_seconds, gpu_ratio, gpu_seconds),
        if(whole.device_uuid is null, 'inactive', 'unseen') as activity,
        gpu.gpu_seconds as seconds
    from gpu
    left join whole
        using (cluster, device_uuid, start_at)
    where gpu.is_unsliced
),

holder as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at|namespace|pod|pod_uid)$'),
        sum(hours_ratio) as hours_ratio,
        any_value(hours_method) as hours_method
    from day.allocated_interval
    group by all
),

-- The share of a unit that its holders have together.
held as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        sum(hours_ratio) as held_ratio
    from holder
    group by all
),

claimant as (
    select
        gpu.* similar to '^(cluster|device_uuid|start_at)$',
        reservation.* exclude (cluster, device_uuid, start_at, end_at),
        1 - coalesce(held.held_ratio, 0) as left_ratio,
        count(*) over same_unit as claim_count,
        if(count(reservation.share_ratio) over same_unit = claim_count, nullif(sum(reservation.share_ratio) over same_unit, 0), null)
            as all_share_ratio
    from gpu
    inner join day.reservation
        using (cluster, device_uuid)
    left join held
        on
            gpu.cluster = held.cluster
            and gpu.device_uuid = held.device_uuid
            and reservation.gpu_instance_id = held.gpu_instance_id
            and gpu.start_at = held.start_at
    anti join facts.claim_use as use
        on
            held.held_ratio > 0
            and gpu.cluster = use.cluster
            and gpu.device_uuid = use.device_uuid
            and reservation.claim_uid = use.claim_uid
            and reservation.gpu_instance_id = use.gpu_instance_id
            and gpu.start_at < use.end_at
            and gpu.end_at > use.start_at
    where
        reservation.start_at < gpu.end_at
        and reservation.end_at > gpu.start_at
        and left_ratio > 1e-9
    window same_unit as (partition by gpu.cluster, gpu.device_uuid, reservation.gpu_instance_id, gpu.start_at)
),

taken as (
    select
        *,
        false as is_reserved
    from holder
    union all by name
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at|namespace|pod|pod_uid)$'),
        true as is_reserved,
        sum(coalesce(share_ratio / all_share_ratio, 1 / claim_count) * least(left_ratio, coalesce(all_share_ratio, 1))) as hours_ratio,
        any_value(left_ratio < 1) as is_beside,
        case
            when any_value(left_ratio < 1 or claim_count > 1 or all_share_ratio < 1 - 1e-9) and any_value(all_share_ratio) > 0 then 'granted_share'
            when any_value(claim_count) = 1 and not is_beside then 'exclusive'
            else 'equal_share'
        end as hours_method
    from claimant
    group by all
),

part as (
    from taken
    union all by name
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        1 - sum(hours_ratio) as hours_ratio
    from taken
    group by all
    having sum(hours_ratio) < 1 - 1e-9
),

seen as (
    select
        unit.* exclude (start_at, seconds) replace (
            -- Activity of the GPU is work of its holders, so its unallocated rest is inactive.
            if((part.pod is null or part.is_beside) and part.hours_ratio is not null and unit.activity != 'unseen', 'inactive', unit.activity)
                as activity
        ),
        coalesce(outage.cause, '') as outage,
        coalesce(part.is_reserved, false) as is_reserved,
        if(part.pod is null and unit.gpu_instance_id = '' and not unit.is_unsliced, coalesce(stranding.cause, ''), '') as stranding,
        coalesce(columns('^(namespace|pod|pod_uid|hours_method)$'), ''),
        unit.seconds * coalesce(part.hours_ratio, 1) as gpu_seconds
    from unit
    left join part
        using (cluster, device_uuid, gpu_instance_id, start_at)
    left join day.device_outage as outage
        on
            unit.cluster = outage.cluster
            and unit.device_uuid = outage.device_uuid
            and unit.start_at >= outage.start_at
            and unit.start_at < outage.end_at
    left join day.fragmented_gpu as stranding
        on
            unit.cluster = stranding.cluster
            and unit.device_uuid = stranding.device_uuid
            and unit.start_at >= stranding.start_at
            and unit.start_at < stranding.end_at
    -- Sums of parts differ by less than a microsecond.
    where unit.seconds > 1e-6
),

-- Time in which the GPU was unavailable and had no data either.
outage_hour as (
    select
        *,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from day.device_outage
),

lost as (
    select
        outage_hour.* similar to '^(cluster|device_uuid|hour_start_at)$',
        outage_hour.cause as outage,
        overlap_ms(outage_hour.start_at, outage_hour.end_at, outage_hour.hour_start_at, outage_hour.hour_start_at + interval 1 hour) / 1000 as outage_seconds,
        coalesce(sum(gpu.seen_seconds), 0) as seen_seconds
    from outage_hour
    left join gpu
        on
            outage_hour.cluster = gpu.cluster
            and outage_hour.device_uuid = gpu.device_uuid
            and outage_hour.hour_start_at = gpu.hour_start_at
            and gpu.start_at >= outage_hour.start_at
            and gpu.start_at < outage_hour.end_at
    group by all
)

select
    * exclude (fit_ratio, gpu_seconds),
    sum(gpu_seconds) as gpu_seconds
from seen
group by all
union all by name
select
    cluster,
    device_uuid,
    '' as gpu_instance_id,
    hour_start_at,
    outage,
    false as is_reserved,
    false as is_unsliced,
    '' as stranding,
    'unseen' as activity,
    '' as namespace,
    '' as pod,
    '' as pod_uid,
    '' as hours_method,
    sum(outage_seconds - seen_seconds) as gpu_seconds
from lost
where outage_seconds > seen_seconds
group by all
