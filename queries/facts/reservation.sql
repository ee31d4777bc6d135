-- When a resource claim had a GPU allocated to it, whether or not a container used it: spans of one claim that do not overlap.
--
-- An allocation that was looked at stands until the claim's cluster was looked at again, for 15 minutes at most. Claims for watching
-- only (admin access) take nothing. MIG instances are left out: their claims do not say which instance they were given.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, claim_uid, start_at
-- reads:  lake.claim_consumer, lake.claim_device, lake.device, lake.node
-- params:
-- source: ResourceClaim status.allocation and status.reservedFor; UUIDs by ResourceSlice
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   namespace        namespace of the claim
--   claim_uid        uid of the claim
--   start_at         UTC, start of the span
--   end_at           UTC, its end, outside it
--   pod              pod that reserved it; '' where none did
--   pod_uid          its uid
with look as (
    select distinct
        cluster,
        observed_at
    from lake.node
    union
    select distinct
        cluster,
        observed_at
    from lake.claim_device
),

followed as (
    select
        *,
        lead(observed_at) over (
            partition by cluster
            order by observed_at
        ) as next_at
    from look
),

consumer as (
    select
        cluster,
        namespace,
        claim_uid,
        observed_at,
        min({ 'pod': consumer, 'pod_uid': consumer_uid }) as first
    from lake.claim_consumer
    where consumer_resource = 'pods'
    group by all
),

gpu as (
    select
        cluster,
        driver,
        pool,
        device,
        observed_at,
        max(device_uuid) as device_uuid
    from lake.device
    where device_type = 'gpu' and device_uuid != ''
    group by all
),

allocated as (
    select
        claim_device.cluster,
        gpu.device_uuid,
        claim_device.namespace,
        claim_device.claim_uid,
        claim_device.observed_at::timestamp as start_at,
        least(
            coalesce(followed.next_at, claim_device.observed_at + interval 15 minute), claim_device.observed_at + interval 15 minute
        )::timestamp as end_at,
        consumer.first
    from lake.claim_device
    inner join followed
        on
            claim_device.cluster = followed.cluster
            and claim_device.observed_at = followed.observed_at
    inner join gpu
        on
            claim_device.cluster = gpu.cluster
            and claim_device.driver = gpu.driver
            and claim_device.pool = gpu.pool
            and claim_device.device = gpu.device
            and claim_device.observed_at = gpu.observed_at
    left join consumer
        on
            claim_device.cluster = consumer.cluster
            and claim_device.namespace = consumer.namespace
            and claim_device.claim_uid = consumer.claim_uid
            and claim_device.observed_at = consumer.observed_at
    where not claim_device.is_admin_access
),

opened as (
    select
        *,
        coalesce(start_at > max(end_at) over (
            partition by cluster, device_uuid, namespace, claim_uid
            order by start_at, end_at
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from allocated
),

numbered as (
    select
        *,
        count(*) filter (where is_new) over (
            partition by cluster, device_uuid, namespace, claim_uid
            order by start_at, end_at
            rows between unbounded preceding and current row
        ) as number
    from opened
)

select
    cluster,
    device_uuid,
    '' as gpu_instance_id,
    namespace,
    claim_uid,
    min(start_at) as start_at,
    max(end_at) as end_at,
    coalesce(min(first.pod), '') as pod,
    coalesce(min(first.pod_uid), '') as pod_uid
from numbered
group by cluster, device_uuid, namespace, claim_uid, number
