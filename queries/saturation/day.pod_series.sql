-- Series of a holder's own measurements, and when it held the device: one timeline per holder and signal.
--
-- The container's own series comes before the pod's.
--
-- grain:  cluster, line_number, series_id, start_at
-- reads:  facts.ownership, lake.series
-- source: series of scope pod: DCGM_FI_DEV_GPU_UTIL and DCGM_FI_DEV_FB_USED with a pod beside a series without, hami_*
-- columns:
--   line_number  number of the holder and signal
--   metric       name of the metric
--   scope        pod, or container for the container's own series
--   is_alone     whether no other series measures the same
with measured as (
    select
        * exclude (scope),
        if(metric ilike 'dcgm%' or container = '', 'pod', 'container') as scope
    from lake.series
    where
        scope = 'pod' and device_uuid != '' and pod != ''
        and signal in ('gpu_util_ratio', 'fb_used_bytes', 'fb_total_bytes')
),

-- The holder that had the name of a series at that time, because some series have no pod uid.
holder as (
    select
        ownership.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|start_at|end_at)$',
        measured.* similar to '^(series_id|signal|metric|scope)$'
    from facts.ownership
    inner join measured
        using (cluster, device_uuid, gpu_instance_id, namespace, pod)
    where
        (measured.pod_uid in ('', ownership.pod_uid) or ownership.pod_uid = '')
        and measured.container in ('', ownership.container)
)

select
    *,
    dense_rank() over (
        order by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
    ) as line_number,
    count(distinct series_id) over (
        partition by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
    ) = 1 as is_alone
from holder
qualify scope = min(scope) over (
    partition by cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, signal
)
