-- Time over value: duration of each sample value, by device, ownership interval and signal.
--
-- A sample counts as a whole in the ownership interval of its time. Bins are fixed, so they add up over hours, devices and holders. Time in a bin is
-- whole seconds, at least one: this takes a fifth of the bytes.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at, signal
-- reads:  day.ownership_interval, lake.device_sample
-- source: bin_width, value_bin
-- columns: cluster, device_uuid, gpu_instance_id, start_at, signal, bins, bin_milliseconds
--   start_at          UTC, start of the ownership interval, or of the hour where nothing is cut
with sampled as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        seen_at::timestamp as seen_at,
        (1000 * held_seconds)::integer as held_ms,
        columns('^((gpu_util|(sm|tensor|dram)_active)_ratio|power_watts|gpu_temp_celsius)$')::double as "\0",
        memory_ratio(fb_used_bytes, fb_free_bytes) as memory_used_ratio
    from lake.device_sample
),

placed as (
    select
        sampled.* exclude (seen_at),
        greatest(date_trunc('hour', sampled.seen_at), ownership_interval.start_at) as start_at
    from sampled
    asof left join day.ownership_interval
        on
            sampled.cluster = ownership_interval.cluster and sampled.device_uuid = ownership_interval.device_uuid
            and sampled.seen_at >= ownership_interval.start_at
    where sampled.held_ms > 0
),

binned as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at|signal)$'),
        value_bin(value, bin_width(signal)) as bin,
        greatest(1, round(sum(held_ms) / 1000))::integer * 1000 as milliseconds
    from placed
    unpivot (
        value for signal in (
            gpu_util_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio, memory_used_ratio, power_watts, gpu_temp_celsius
        )
    )
    group by all
)

select
    columns('^(cluster|device_uuid|gpu_instance_id|start_at|signal)$'),
    list(bin order by bin) as bins,
    list(milliseconds order by bin) as bin_milliseconds
from binned
group by cluster, device_uuid, gpu_instance_id, start_at, signal
