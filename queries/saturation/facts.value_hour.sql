-- Time over value of each holder, hour by hour, or by ownership interval where holders change: histograms of signals.
--
-- Activity and memory of a MIG instance are the instance's own, power and temperature the board's. The part of a GPU outside its instances has no
-- activity of its own. Time without a holder also has rows.
--
-- revision: 3
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, signal
-- reads:  day.allocated_interval, day.partition_interval, day.value_time
-- source: day.value_time over day.allocated_interval and day.partition_interval
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, signal, gpu_model, part_ratio, bins, bin_milliseconds
--   namespace         namespace of the workload; '' where unallocated
--   start_at          UTC, start of the ownership interval, or of the hour where holders do not change
--   part_ratio        0..1, the holder's part of the GPU: its instance's part x its part among holders
with value as (
    select
        * exclude (gpu_instance_id),
        gpu_instance_id as measured_instance_id,
        signal in ('power_watts', 'gpu_temp_celsius') as is_of_board
    from day.value_time
)

select
    part.* similar to '^(cluster|device_uuid|gpu_instance_id)$',
    coalesce(holder.namespace, '') as namespace,
    coalesce(holder.pod, '') as pod,
    coalesce(holder.pod_uid, '') as pod_uid,
    coalesce(holder.container, '') as container,
    part.start_at,
    value.signal,
    part.gpu_model,
    part.gpu_ratio * coalesce(holder.allocated_part_ratio, 1) as part_ratio,
    value.bins,
    value.bin_milliseconds
from day.partition_interval as part
inner join value
    using (cluster, device_uuid, start_at)
left join day.allocated_interval as holder
    using (cluster, device_uuid, gpu_instance_id, start_at)
where
    value.measured_instance_id = if(value.is_of_board, '', part.gpu_instance_id)
    and part.gpu_ratio > 0
    and (value.is_of_board or not part.is_unsliced)
