-- Allocated GPU-hours of each workload in the window and in the previous period: on GPUs of both, and on those that came or went.
--
-- Pods come and go while their workload stays; a pod without a known workload is its own. A GPU has one model, its latest name: drivers
-- rename them. Hours of the previous period are scaled to the length of this one, so that a longer window is no growth.
--
-- grain:  cluster, gpu_model, namespace, workload, presence
-- reads:  period.capacity, period.workload_ledger, previous.capacity, previous.workload_ledger
-- params: window_ratio
-- source: period.ledger of both windows
-- columns:
--   workload                      kind/name; of a pod without one pod/uid
--   previous_allocated_gpu_hours        h held in the previous period, scaled
--   previous_effective_gpu_hours   h of these with SM activity of 0.5 or more, scaled
--   unmeasured_gpu_hours          h of these active with SM activity unknown
with previous_device as (
    select
        cluster,
        device_uuid,
        max(gpu_model) as gpu_model
    from previous.capacity
    group by all
),

-- A cluster without data for the previous period would be all new.
device_now as (
    select
        cluster,
        device_uuid,
        max(gpu_model) as gpu_model
    from period.capacity
    where cluster in (select before.cluster from previous.capacity as before)
    group by all
),

device as (
    select
        coalesce(previous_device.cluster, device_now.cluster) as cluster,
        coalesce(previous_device.device_uuid, device_now.device_uuid) as device_uuid,
        coalesce(nullif(device_now.gpu_model, ''), previous_device.gpu_model) as gpu_model,
        case
            when device_now.cluster is null then 'removed'
            when previous_device.cluster is null then 'added'
            else 'both'
        end as presence
    from previous_device
    full join device_now
        using (cluster, device_uuid)
),

allocated as (
    select
        *,
        gpu_hours * $window_ratio as previous_gpu_hours,
        0 as later_gpu_hours
    from previous.workload_ledger
    union all by name
    select
        *,
        0 as previous_gpu_hours,
        gpu_hours as later_gpu_hours
    from period.workload_ledger
),

summed as (
    select
        allocated.cluster,
        if(allocated.device_uuid = '', allocated.gpu_model, device.gpu_model) as gpu_model,
        allocated.namespace,
        allocated.workload,
        device.presence,
        sum(allocated.previous_gpu_hours) as previous_allocated_gpu_hours,
        sum(allocated.later_gpu_hours) as allocated_gpu_hours,
        coalesce(sum(allocated.previous_gpu_hours) filter (where allocated.bucket = 'effective'), 0) as previous_effective_gpu_hours,
        coalesce(sum(allocated.later_gpu_hours) filter (where allocated.bucket = 'effective'), 0) as effective_gpu_hours,
        coalesce(sum(allocated.previous_gpu_hours) filter (where allocated.bucket in ('active_unmeasured', 'allocated_unmeasured')), 0) as previous_unmeasured_gpu_hours,
        coalesce(sum(allocated.later_gpu_hours) filter (where allocated.bucket in ('active_unmeasured', 'allocated_unmeasured')), 0) as unmeasured_gpu_hours
    from allocated
    inner join device
        using (cluster, device_uuid)
    where allocated.bucket in ('effective', 'underutilized', 'active_unmeasured', 'allocated_unmeasured', 'allocated_idle')
    group by all
)

select
    *,
    sum(previous_allocated_gpu_hours) over holder > 0 as allocated_before,
    sum(allocated_gpu_hours) over holder > 0 as allocated_now
from summed
window holder as (partition by cluster, gpu_model, namespace, workload)
