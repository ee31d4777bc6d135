-- Activity series of each holder of a shared GPU or MIG instance: utilization, else Kepler's watts.
--
-- A series without the pod's uid belongs to the holder of its name at that time. A container's own series comes before its pod's. Kepler shows the
-- watts of a pod on all its GPUs together, so only a pod on one GPU or instance counts. They are used where they report every sharer and utilization
-- does not.
--
-- grain:  cluster, holder_number, series_id
-- reads:  day.allocated_interval, day.kepler_series, lake.series
-- source: series of scope pod: DCGM_FI_DEV_GPU_UTIL with a pod beside a series without, hami_*; kepler_pod_gpu_watts
-- columns:
--   pod_owner_count  containers of the pod on the GPU or instance that share the pod's value; 1 for a container's own value
with measured as (
    select
        * exclude (scope),
        if(metric ilike 'dcgm%' or container = '', 'pod', 'container') as scope,
        if(metric ilike 'dcgm%', 'sm_util_share', 'process_util_share') as method
    from lake.series
    where scope = 'pod' and device_uuid != '' and pod != '' and signal = 'gpu_util_ratio'
),

sharer as (
    from day.allocated_interval
    where if(gpu_instance_id = '', owner_count, instance_owner_count) > 1
),

by_utilisation as (
    select
        allocated.cluster,
        allocated.holder_number,
        measured.series_id,
        allocated.* similar to '^(device_uuid|gpu_instance_id|start_at|end_at)$',
        measured.scope,
        measured.method,
        if(measured.scope = 'pod', allocated.pod_owner_count, 1) as pod_owner_count
    from sharer as allocated
    inner join measured
        using (cluster, device_uuid, gpu_instance_id, namespace, pod)
    where
        (measured.pod_uid in ('', allocated.pod_uid) or allocated.pod_uid = '')
        and measured.container in ('', allocated.container)
    qualify measured.scope = min(measured.scope) over (partition by allocated.holder_number)
),

pod_of_one_gpu as (
    select allocated.* similar to '^(cluster|namespace|pod|pod_uid|hour_start_at)$'
    from day.allocated_interval as allocated
    semi join day.kepler_series
        using (cluster, namespace, pod)
    group by allocated.cluster, allocated.namespace, allocated.pod, allocated.pod_uid, allocated.hour_start_at
    having min((allocated.device_uuid, allocated.gpu_instance_id)) = max((allocated.device_uuid, allocated.gpu_instance_id))
),

by_kepler as (
    select
        allocated.cluster,
        allocated.holder_number,
        kepler.series_id,
        allocated.* similar to '^(device_uuid|gpu_instance_id|start_at|end_at)$',
        'pod' as scope,
        'kepler_share' as method,
        allocated.pod_owner_count
    from sharer as allocated
    semi join pod_of_one_gpu
        using (cluster, namespace, pod, pod_uid, hour_start_at)
    inner join day.kepler_series as kepler
        using (cluster, namespace, pod)
    where (kepler.pod_uid in ('', allocated.pod_uid) or allocated.pod_uid = '')
),

-- Intervals in which some sharers of a GPU or an instance do not report their utilization, but Kepler has all sharers.
kepler_serves as (
    select columns('^(cluster|device_uuid|gpu_instance_id|start_at)$')
    from sharer
    group by cluster, device_uuid, gpu_instance_id, start_at
    having
        not bool_and(holder_number in (select by_utilisation.holder_number from by_utilisation))
        and bool_and(holder_number in (select by_kepler.holder_number from by_kepler))
)

select by_utilisation.*
from by_utilisation
anti join kepler_serves
    using (cluster, device_uuid, gpu_instance_id, start_at)
union all by name
select by_kepler.*
from by_kepler
semi join kepler_serves
    using (cluster, device_uuid, gpu_instance_id, start_at)
