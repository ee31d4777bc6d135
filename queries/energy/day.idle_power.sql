-- Power of each unallocated GPU per hour: seconds per whole watt in which it is idle.
--
-- Time with activity is not idle, because a pod that uses a GPU without a request has no name in any source. Time is whole milliseconds. The last bin
-- is 10 kW and more.
--
-- grain:  cluster, device_uuid, hour_start_at, bin_watts
-- reads:  day.allocated_run, lake.device_sample
-- source: DCGM_FI_DEV_POWER_USAGE outside the runs of day.allocated_run
-- columns: cluster, device_uuid, hour_start_at, bin_watts, idle_seconds
--   idle_seconds  s at this power
with taken_hour as (
    select
        columns('^(cluster|device_uuid)$'),
        epoch_ms(start_at) as start_ms,
        epoch_ms(end_at) as end_ms,
        unnest(generate_series(start_ms // 3600000, (end_ms - 1) // 3600000)) as hour_number
    from day.allocated_run
),

-- An hour without a row is free throughout; allocated intervals of other hours are disjoint and in order.
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
        (1000 * sample.held_seconds)::integer as held_ms,
        least(10000, greatest(0, round(sample.power_watts::double)))::bigint as bin_watts
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
        sampled.* exclude (seen_ms, held_ms),
        sampled.held_ms - coalesce(list_sum([
            greatest(0, least(step.end_ms, sampled.seen_ms + sampled.held_ms) - greatest(step.start_ms, sampled.seen_ms))
            for step in hour.taken_intervals
        ]), 0) as idle_ms
    from sampled
    left join hour
        using (cluster, device_uuid, hour_start_at)
    where not coalesce(hour.is_full, false)
)

select
    columns('^(cluster|device_uuid|hour_start_at|bin_watts)$'),
    sum(idle_ms) / 1000 as idle_seconds
from free
where idle_ms > 0
group by all
