-- Match of resource claims' devices to the devices in telemetry, by the cluster's own objects.
--
-- A claim's device is (driver, pool, device). Its UUID comes from the driver's ResourceSlice; for a MIG instance it is the GPU's UUID. Without a
-- UUID, the GPU at the same PCI address of the node counts. No driver reports the id of the instance. It is the only instance with the profile at
-- that time; else the instance on which the exporter names a pod that reserved the claim. Else instances and devices of the profile are paired in
-- order, which may be wrong and is marked in matched_by. For partitions other than MIG instances (AMD), no source has the id.
--
-- grain:  cluster, namespace, claim_uid, driver, pool, device, share_id, request, start_at
-- reads:  day.claim_allocation, lake.claim_consumer, lake.device, lake.device_label, lake.owner_label
-- source: day.claim_allocation; ResourceSlices; labels of the device's series (PCI address, GPU_I_PROFILE)
-- columns:
--   device_type      gpu, mig, …; '' where the driver does not report it
--   gpu_instance_id  MIG instance; '' for the whole GPU; null where unknown
--   matched_by       uuid, pci address, only instance of the profile, instance with labels of the pod, order of instances; '' without a match
with allocatable as (
    select
        columns('^(cluster|driver|pool|device|node_name|device_type|profile|gpu_model|device_uuid|pci_bus_id)$'),
        max(observed_at)::timestamp as last_at
    from lake.device
    group by all
),

-- The last description in resource slices before the allocation's end, else the first after it.
described as (
    select
        allocation.* similar to '^(cluster|claim_uid|driver|pool|device|share_id|request|start_at)$',
        arg_max(allocatable, if(allocatable.last_at <= allocation.end_at, 1, -1) * epoch_ms(allocatable.last_at)) as found
    from day.claim_allocation as allocation
    inner join allocatable
        using (cluster, driver, pool, device)
    group by all
),

label as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        gpu_instance_profile as profile,
        max(node_name) as node_name,
        max(right(lower(pci_bus_id), 12)) as pci_bus_id
    from lake.device_label
    group by all
),

placed as (
    select
        columns('^(cluster|node_name|pci_bus_id)$'),
        max(device_uuid) as device_uuid
    from label
    where pci_bus_id != ''
    group by cluster, node_name, pci_bus_id
    having count(distinct device_uuid) = 1
),

allocated as (
    select
        allocation.*,
        coalesce(described.found.node_name, '') as node_name,
        coalesce(described.found.device_type, '') as device_type,
        coalesce(described.found.profile, '') as profile,
        coalesce(described.found.gpu_model, '') as gpu_model,
        coalesce(nullif(described.found.device_uuid, ''), placed.device_uuid, '') as device_uuid,
        coalesce(described.found.device_uuid, '') = '' and placed.device_uuid is not null as is_by_address
    from day.claim_allocation as allocation
    left join described
        using (cluster, claim_uid, driver, pool, device, share_id, request, start_at)
    left join placed
        on
            allocation.cluster = placed.cluster
            and described.found.node_name = placed.node_name
            and right(lower(described.found.pci_bus_id), 12) = placed.pci_bus_id
),

instance as (
    from label
    where gpu_instance_id != ''
),

-- Instance ids are used again, so only instances that were present during the allocation count.
sole as (
    select
        allocated.* similar to '^(cluster|claim_uid|device|share_id|request|start_at)$',
        min(run.gpu_instance_id) as gpu_instance_id
    from allocated
    inner join lake.device_label as run
        using (cluster, device_uuid)
    where
        allocated.profile = run.gpu_instance_profile
        and run.start_at < allocated.end_at
        and run.end_at > allocated.start_at
        and allocated.device_type = 'mig' and run.gpu_instance_id != ''
    group by allocated.cluster, allocated.claim_uid, allocated.device, allocated.share_id, allocated.request, allocated.start_at
    having count(distinct run.gpu_instance_id) = 1
),

-- Instances on which the exporter names a pod that reserved the claim.
named as (
    select
        allocated.* similar to '^(cluster|claim_uid|device_uuid|profile)$',
        min(allocated.device) as device,
        min(instance.gpu_instance_id) as gpu_instance_id
    from allocated
    inner join lake.claim_consumer as consumer
        using (cluster, namespace, claim_uid)
    inner join lake.owner_label as owner
        using (cluster, device_uuid, namespace)
    inner join instance
        using (cluster, device_uuid, gpu_instance_id, profile)
    where
        consumer.consumer_resource = 'pods'
        and consumer.consumer = owner.pod
        and owner.pod_uid in ('', consumer.consumer_uid)
        and owner.start_at < allocated.end_at
        and owner.end_at > allocated.start_at
        and allocated.device_type = 'mig'
    group by allocated.cluster, allocated.claim_uid, allocated.device_uuid, allocated.profile
    having count(distinct instance.gpu_instance_id) = 1 and count(distinct allocated.device) = 1
),

ordered_instance as (
    select
        *,
        row_number() over (
            partition by cluster, device_uuid, profile
            order by try_cast(gpu_instance_id as integer), gpu_instance_id
        ) as number
    from instance
    anti join named
        using (cluster, device_uuid, gpu_instance_id, profile)
),

-- A driver that makes instances on request advertises many more than are present.
made as (
    select
        columns('^(cluster|device_uuid|profile)$'),
        count(*) as instance_count
    from instance
    group by cluster, device_uuid, profile
),

place as (
    select
        allocatable.* similar to '^(cluster|driver|pool|device|device_uuid|profile)$',
        bool_or(allocated.claim_uid is not null) as is_allocated
    from allocatable
    left join allocated
        using (cluster, driver, pool, device)
    where allocatable.device_type = 'mig'
    group by all
),

-- The end of a device's name is its placement on the GPU.
partition_device as (
    select place.*
    from place
    inner join made
        using (cluster, device_uuid, profile)
    qualify count(*) over (partition by cluster, device_uuid, profile) = made.instance_count or place.is_allocated
),

ordered_device as (
    select
        partition_device.*,
        row_number() over (
            partition by cluster, device_uuid, profile
            order by try_cast(regexp_extract(device, '(\d+)$', 1) as integer), device
        ) as number
    from partition_device
    anti join named
        using (cluster, device_uuid, device)
)

select
    allocated.* exclude (is_by_address),
    case
        when allocated.device_type = 'partition' then null
        when allocated.device_type != 'mig' then ''
        else coalesce(sole.gpu_instance_id, named.gpu_instance_id, ordered_instance.gpu_instance_id)
    end as gpu_instance_id,
    case
        when allocated.device_uuid = '' or allocated.device_type = 'partition' then ''
        when allocated.device_type != 'mig' then if(allocated.is_by_address, 'pci address', 'uuid')
        when sole.gpu_instance_id is not null then 'only instance of the profile'
        when named.gpu_instance_id is not null then 'instance with labels of the pod'
        when ordered_instance.gpu_instance_id is not null then 'order of instances'
        else ''
    end as matched_by
from allocated
left join sole
    using (cluster, claim_uid, device, share_id, request, start_at)
left join named
    using (cluster, claim_uid, device_uuid, profile)
left join ordered_device
    using (cluster, driver, pool, device, device_uuid, profile)
left join ordered_instance
    using (cluster, device_uuid, profile, number)
