-- Allocated GPU-hours of each workload in the window and in the previous period: on GPUs of both, and on added or removed GPUs.
--
-- A workload stays the same while its pods change; a pod without a known workload is a workload. A GPU has one model, its latest name, because
-- drivers rename models. Hours of the previous period are scaled to the length of this one, so that a longer window is no growth. Clusters with less
-- than figure_min_coverage of either period known are left out: otherwise missing data would look like a change.
--
-- grain:  cluster, gpu_model, namespace, workload, presence
-- reads:  period.capacity, period.workload_ledger, previous.capacity, previous.workload_ledger
-- params: figure_min_coverage_ratio, window_ratio
-- source: period.ledger of both windows
-- columns:
--   workload                      kind/name; pod/uid for a pod without a workload
--   previous_allocated_gpu_hours  h allocated in the previous period, scaled
--   previous_effective_gpu_hours  h of these with SM activity of 0.5 or more, scaled
--   unmeasured_gpu_hours          h of these active with unknown SM activity
with hour as (
    select *
    from both_periods(previous.workload_ledger, period.workload_ledger)
),

known as (
    select cluster
    from hour
    group by cluster
    having
        sum(gpu_hours) filter (where period = 'now' and bucket != 'unknown') >= $figure_min_coverage_ratio * sum(gpu_hours) filter (where period = 'now')
        and sum(gpu_hours) filter (where period = 'before' and bucket != 'unknown') >= $figure_min_coverage_ratio * sum(gpu_hours) filter (where period = 'before')
),

device as (
    select
        cluster,
        device_uuid,
        coalesce(arg_max(gpu_model, day) filter (where period = 'now' and gpu_model != ''), max(gpu_model) filter (where period = 'before')) as gpu_model,
        case
            when bool_or(is_of_node) then 'both'
            when not bool_or(period = 'now') then 'removed'
            when not bool_or(period = 'before') then 'added'
            else 'both'
        end as presence
    from both_capacities(previous.capacity, period.capacity)
    where cluster in (select known.cluster from known)
    group by cluster, device_uuid
),

allocated as (
    select
        * replace (if(period = 'now', gpu_hours, 0) as gpu_hours),
        if(period = 'before', gpu_hours * $window_ratio, 0) as previous_gpu_hours
    from hour
),

summed as (
    select
        allocated.* similar to '^(cluster|namespace|workload)$',
        if(allocated.device_uuid = '', allocated.gpu_model, device.gpu_model) as gpu_model,
        device.presence,
        sum(columns('^(previous_)?gpu_hours$')) as '\1allocated_gpu_hours',
        coalesce(sum(columns('^(previous_)?gpu_hours$')) filter (where allocated.bucket = 'effective'), 0) as '\1effective_gpu_hours',
        coalesce(sum(columns('^(previous_)?gpu_hours$')) filter (where allocated.bucket like '%unmeasured'), 0) as '\1unmeasured_gpu_hours'
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
