-- Who held which device, and when: the one place that every later figure reads.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  clean.owner_run
-- params:
-- source: exporter labels; better sources replace them here when they come
-- columns:
--   cluster           cluster name
--   device_uuid       UUID of the physical GPU
--   gpu_instance_id   MIG instance; '' for the whole GPU
--   namespace         workload namespace
--   pod               workload pod
--   pod_uid           its uid; '' where unknown
--   container         workload container
--   start_at          UTC, start of the span
--   end_at            UTC, its end, outside it
--   source            labels: the workload was named on the device's series
--   certainty         certain, or ambiguous where owners cannot be told apart
--   sharing_mode      exclusive, mig or time-sliced
--   sharing_evidence  what that is read from
with shared as (
    -- Runs during which somebody else was named on the same device: copies per sharing pod (KUBERNETES_VIRTUAL_GPUS).
    select distinct
        run.cluster,
        run.device_uuid,
        run.gpu_instance_id,
        run.namespace,
        run.pod,
        run.pod_uid,
        run.container,
        run.start_at
    from clean.owner_run as run
    inner join clean.owner_run as other
        on
            run.cluster = other.cluster
            and run.device_uuid = other.device_uuid
            and run.gpu_instance_id = other.gpu_instance_id
            and run.start_at < other.end_at
            and run.end_at > other.start_at
            and (run.namespace, run.pod, run.pod_uid, run.container)
            != (other.namespace, other.pod, other.pod_uid, other.container)
)

select
    run.cluster,
    run.device_uuid,
    run.gpu_instance_id,
    run.namespace,
    run.pod,
    run.pod_uid,
    run.container,
    run.start_at,
    run.end_at,
    'labels' as source,
    'certain' as certainty,
    case
        when shared.start_at is not null then 'time-sliced'
        when run.gpu_instance_id != '' then 'mig'
        else 'exclusive'
    end as sharing_mode,
    case
        when shared.start_at is not null then 'several owners named at once'
        when run.gpu_instance_id != '' then 'GPU instance id on the series'
        else 'one owner named at a time'
    end as sharing_evidence
from clean.owner_run as run
left join shared
    on
        run.cluster = shared.cluster
        and run.device_uuid = shared.device_uuid
        and run.gpu_instance_id = shared.gpu_instance_id
        and run.namespace = shared.namespace
        and run.pod = shared.pod
        and run.pod_uid = shared.pod_uid
        and run.container = shared.container
        and run.start_at = shared.start_at
