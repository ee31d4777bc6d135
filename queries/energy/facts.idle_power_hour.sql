-- Power of each unallocated GPU per hour: seconds per whole watt, by MIG layout.
--
-- The first minute after a holder left is no idle time: clocks and fans come down slowly. Nor is time in which the GPU was at
-- work all the same: a pod that takes a GPU without requesting it is named nowhere.
--
-- revision: 3
-- grain:  cluster, device_uuid, layout, hour_start_at, bin_watts
-- reads:  day.device_layout, day.device_run, facts.ownership, lake.device_sample
-- source: DCGM_FI_DEV_POWER_USAGE outside the spans of facts.ownership
-- columns: cluster, device_uuid, layout, hour_start_at, bin_watts, idle_seconds, gpu_model
--   idle_seconds  s at that power
with owned as (
    select
        * exclude (end_at),
        end_at + interval 1 minute as end_at
    from facts.ownership
),

taken as (
    select
        columns('^(cluster|device_uuid)$'),
        epoch_ms(min(start_at)) as start_ms,
        epoch_ms(max(end_at)) as end_ms
    from numbered_runs(owned, (cluster, device_uuid))
    group by cluster, device_uuid, run_number
),

taken_hour as (
    select
        *,
        unnest(generate_series(start_ms // 3600000, (end_ms - 1) // 3600000)) as hour_number
    from taken
),

-- An hour without a row is free as a whole; what is taken of the others is disjoint and in order.
hour as (
    select
        columns('^(cluster|device_uuid)$'),
        make_timestamp_ms(hour_number * 3600000) as hour_start_at,
        list({ 'start_ms': start_ms, 'end_ms': end_ms } order by start_ms) as taken_intervals,
        max(start_ms <= hour_number * 3600000 and end_ms >= (hour_number + 1) * 3600000) as is_full
    from taken_hour
    group by cluster, device_uuid, hour_number
),

working as (
    select columns('^(cluster|device_uuid|seen_at)$')
    from lake.device_sample
    where gpu_instance_id != '' and is_active(null, gr_engine_active_ratio, sm_active_ratio, null, null)
),

sampled as (
    select
        sample.* similar to '^(cluster|device_uuid)$',
        date_trunc('hour', sample.seen_at::timestamp) as hour_start_at,
        epoch_ms(sample.seen_at) as seen_ms,
        sample.held_seconds,
        sample.power_watts::double as power_watts
    from lake.device_sample as sample
    anti join working
        using (cluster, device_uuid, seen_at)
    where
        sample.gpu_instance_id = '' and sample.power_watts is not null
        and not coalesce(is_active(
            sample.gpu_util_ratio, sample.gr_engine_active_ratio, sample.sm_active_ratio, sample.pcie_tx_bytes_per_second, sample.pcie_rx_bytes_per_second
        ), false)
),

free as (
    select
        sampled.* exclude (seen_ms, held_seconds, power_watts),
        round(sampled.power_watts)::bigint as bin_watts,
        sampled.held_seconds - coalesce(list_sum([
            greatest(0, least(step.end_ms, sampled.seen_ms + 1000 * sampled.held_seconds) - greatest(step.start_ms, sampled.seen_ms))
            for step in hour.taken_intervals
        ]), 0) / 1000 as idle_seconds
    from sampled
    left join hour
        using (cluster, device_uuid, hour_start_at)
    where not coalesce(hour.is_full, false)
),

model as (
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
    free.* similar to '^(hour_start_at|bin_watts)$',
    sum(free.idle_seconds) as idle_seconds,
    coalesce(model.gpu_model, '') as gpu_model
from free
left join day.device_layout
    using (cluster, device_uuid, hour_start_at)
left join model
    using (cluster, device_uuid)
where free.idle_seconds > 0
group by all
