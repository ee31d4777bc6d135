-- The series that tell the utilisation of a holder itself, of those that share a whole GPU or a MIG instance.
--
-- A series without the pod's uid is of the holder of its name at that time. A container's own comes before its pod's.
--
-- grain:  cluster, holder_number, series_id
-- reads:  facts.held_piece, lake.series
-- params:
-- source: series of scope pod: DCGM_FI_DEV_GPU_UTIL with a pod beside a series without, hami_*
-- columns:
--   cluster        cluster name
--   holder_number  of facts.held_piece
--   series_id      of lake.series
--   device_uuid    UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   start_at       UTC, start of the piece
--   end_at         UTC, its end, outside it
--   scope          pod or container, whose utilisation it is
--   method         sm_util_share, or process_util_share where another exporter than dcgm-exporter gives it
--   pod_owner_count  containers of the pod on the GPU or instance: they share a pod's value; 1 for a container's own
with measured as (
    select
        cluster,
        series_id,
        device_uuid,
        gpu_instance_id,
        namespace,
        pod,
        pod_uid,
        container,
        if(metric ilike 'dcgm%' or container = '', 'pod', 'container') as scope,
        if(metric ilike 'dcgm%', 'sm_util_share', 'process_util_share') as method
    from lake.series
    where scope = 'pod' and device_uuid != '' and pod != '' and signal = 'gpu_util_ratio'
)

select
    held.cluster,
    held.holder_number,
    measured.series_id,
    held.device_uuid,
    held.gpu_instance_id,
    held.start_at,
    held.end_at,
    measured.scope,
    measured.method,
    if(measured.scope = 'pod', held.pod_owner_count, 1) as pod_owner_count
from facts.held_piece as held
inner join measured
    on
        held.cluster = measured.cluster
        and held.device_uuid = measured.device_uuid
        and held.gpu_instance_id = measured.gpu_instance_id
        and held.namespace = measured.namespace
        and held.pod = measured.pod
        and (measured.pod_uid in ('', held.pod_uid) or held.pod_uid = '')
        and measured.container in ('', held.container)
where if(held.gpu_instance_id = '', held.owner_count, held.instance_owner_count) > 1
qualify measured.scope = min(measured.scope) over (partition by held.holder_number)
