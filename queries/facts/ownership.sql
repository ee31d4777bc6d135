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
--   certainty         certain, or ambiguous where owners are named in turn
--   sharing_mode      exclusive, mig, time-sliced, or time-sliced? where owners are named in turn
--   sharing_evidence  what that is read from
with stretch as (
    select
        *,
        lead(start_at) over (
            partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container
            order by start_at
        ) as next_start_at
    from clean.owner_run
),

-- A was named, then B, then A again: without copies per pod the exporter names one of several holders at a time
-- (dcgm-exporter without KUBERNETES_VIRTUAL_GPUS), so A held the device meanwhile too. Three steps of 60 s at most:
-- after a longer absence A may have left and come back.
absence as (
    select
        stretch.cluster,
        stretch.device_uuid,
        stretch.gpu_instance_id,
        stretch.namespace,
        stretch.pod,
        stretch.pod_uid,
        stretch.container,
        stretch.end_at as start_at,
        stretch.next_start_at as end_at
    from stretch
    semi join clean.owner_run as other
        on
            stretch.cluster = other.cluster
            and stretch.device_uuid = other.device_uuid
            and stretch.gpu_instance_id = other.gpu_instance_id
            and other.start_at >= stretch.end_at
            and other.end_at <= stretch.next_start_at
    where stretch.next_start_at <= stretch.end_at + interval 3 minutes
),

run as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        namespace,
        pod,
        pod_uid,
        container,
        start_at,
        end_at,
        false as is_absence
    from clean.owner_run
    union all
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        namespace,
        pod,
        pod_uid,
        container,
        start_at,
        end_at,
        true as is_absence
    from absence
),

-- Runs during which somebody else held the same device.
shared as (
    select
        run.cluster,
        run.device_uuid,
        run.gpu_instance_id,
        run.namespace,
        run.pod,
        run.pod_uid,
        run.container,
        run.start_at,
        bool_or(run.is_absence or other.is_absence) as is_alternating
    from run
    inner join run as other
        on
            run.cluster = other.cluster
            and run.device_uuid = other.device_uuid
            and run.gpu_instance_id = other.gpu_instance_id
            and run.start_at < other.end_at
            and run.end_at > other.start_at
            and (run.namespace, run.pod, run.pod_uid, run.container)
            != (other.namespace, other.pod, other.pod_uid, other.container)
    group by all
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
    if(shared.is_alternating, 'ambiguous', 'certain') as certainty,
    case
        when shared.is_alternating then 'time-sliced?'
        when shared.start_at is not null then 'time-sliced'
        when run.gpu_instance_id != '' then 'mig'
        else 'exclusive'
    end as sharing_mode,
    case
        when shared.is_alternating then 'owners named in turn'
        when shared.start_at is not null then 'several owners named at once'
        when run.gpu_instance_id != '' then 'GPU instance id on the series'
        else 'one owner named at a time'
    end as sharing_evidence
from run
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
