-- Containers that ran with a device by Koordinator's annotation or the kubelet, over time.
--
-- A pod keeps its allocated devices, so one snapshot of them covers all runs of its containers. Koordinator allocates devices to pods: the containers
-- that request an extended resource hold them, or all containers if none does. Devices are found by UUID, by the MIG instance in the id, by the name
-- on the node (nvidia0), by the claim's device, or by Koordinator's number on the node; others have no row. The kubelet allocates a device to one
-- container at a time, except replicas. So a run whose end only a snapshot shows ends at the latest when the device's next run starts.
--
-- grain:  cluster, source, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, start_at
-- reads:  day.container_run, lake.device, lake.device_label, lake.koordinator_device, lake.pod_device
-- source: Koordinator's device-allocated annotation and Device objects, kubelet device checkpoint, PodResources
-- columns:
--   source    koordinator, kubelet-checkpoint or pod-resources
with run as (
    select
        *,
        len(resources) > 0 as is_requesting,
        bool_or(len(resources) > 0) over (partition by cluster, pod_uid) as is_pod_requesting
    from day.container_run
),

reported as (
    select distinct
        use.* similar to '^(cluster|source|namespace|pod|pod_uid|container|driver|pool|device)$',
        -- Koordinator before version 1.6 names devices only by their number on the node.
        coalesce(nullif(use.device_id, ''), numbered.device_id, '') as device_id,
        use.replica != '' or use.source = 'koordinator' as is_shared,
        -- A name without a uid means the pod of that time.
        if(use.pod_uid = '', use.observed_at::timestamp, null) as named_at
    from lake.pod_device as use
    left join lake.koordinator_device as numbered
        using (cluster, node_name, device_type, minor, observed_at)
    where use.device_type in ('gpu', '')
),

met as (
    select
        reported.* exclude (namespace, pod, pod_uid, container, named_at),
        reported.container as reported_container,
        run.* exclude (cluster)
    from reported
    inner join run
        using (cluster, pod_uid)
    union all by name
    select
        reported.* exclude (namespace, pod, pod_uid, container, named_at),
        reported.container as reported_container,
        run.* exclude (cluster)
    from reported
    inner join run
        using (cluster, namespace, pod)
    where
        reported.named_at >= run.start_at
        and reported.named_at < run.end_at
        and reported.pod_uid = ''
),

assigned as (
    select distinct
        columns('^(cluster|source|namespace|pod|pod_uid|container|node_name|device_id|driver|pool|device|is_shared|start_at|end_at)$'),
        end_at - to_milliseconds(round(end_uncertainty_seconds * 1000)::bigint) as sure_until_at
    from met
    where reported_container = container or (reported_container = '' and is_requesting = is_pod_requesting)
),

label as (
    select
        columns('^(cluster|device_uuid|node_name|gpu_device)$'),
        min(start_at)::timestamp as first_at,
        max(end_at)::timestamp as last_at
    from lake.device_label
    where gpu_device != ''
    group by all
),

seen as (
    select distinct
        cluster,
        device_uuid
    from lake.device_label
),

allocatable as (
    select
        columns('^(cluster|driver|pool|device)$'),
        max(device_uuid) as device_uuid
    from lake.device
    where device_type != 'mig' and device_uuid != ''
    group by all
),

-- Forms of an id: GPU-…, MIG-GPU-…/3/0 (instance 3), nvidia0, nvidia0/gi3.
found as (
    select
        assigned.*,
        coalesce(
            nullif(regexp_extract(assigned.device_id, '^(?:MIG-)?(GPU-[^/]+)', 1), ''),
            label.device_uuid,
            seen.device_uuid,
            allocatable.device_uuid
        ) as device_uuid,
        coalesce(
            nullif(regexp_extract(assigned.device_id, '^MIG-GPU-[^/]+/(\d+)/', 1), ''),
            regexp_extract(assigned.device_id, '/gi(\d+)$', 1)
        ) as gpu_instance_id
    from assigned
    left join allocatable
        using (cluster, driver, pool, device)
    left join label
        on
            assigned.cluster = label.cluster
            and assigned.node_name = label.node_name
            and split_part(assigned.device_id, '/', 1) = label.gpu_device
    left join seen
        on
            assigned.cluster = seen.cluster
            and assigned.device_id = seen.device_uuid
    -- Of several GPUs that had the name in turn, the one that had it for most of the run.
    qualify row_number() over (
        partition by assigned
        order by overlap_ms(label.first_at, label.last_at, assigned.start_at, assigned.end_at) desc, label.last_at desc, label.device_uuid asc
    ) = 1
),

allocated as (
    select
        columns('^(cluster|source|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|start_at)$'),
        bool_or(is_shared) as is_shared,
        max(columns('^(end_at|sure_until_at)$'))
    from found
    where device_uuid is not null
    group by cluster, source, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, start_at
),

followed as (
    select
        *,
        min(start_at) over (
            partition by cluster, source, device_uuid, gpu_instance_id
            order by start_at
            range between interval 1 millisecond following and unbounded following
        ) as next_start_at
    from allocated
)

select
    * exclude (is_shared, end_at, sure_until_at, next_start_at),
    if(not is_shared and next_start_at >= sure_until_at, least(end_at, next_start_at), end_at) as end_at
from followed
