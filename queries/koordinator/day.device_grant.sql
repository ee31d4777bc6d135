-- Devices that Koordinator's scheduler allocated to each pod; the device's own memory completes all dimensions.
--
-- Bytes of a share of memory: share x total / 100, whole bytes. Share of bytes: 100 x bytes / total, cut to whole percent. If both are present, both
-- stay, even if they contradict each other. Koordinator does not report the container that uses the device.
--
-- grain:  cluster, node_name, pod_uid, device_type, minor
-- reads:  day.state_snapshot, facts.device_request, lake.koordinator_device, lake.pod, lake.pod_device
-- source: Pod annotation scheduling.koordinator.sh/device-allocated; Device spec.devices[].resources
-- columns:
--   device_id             UUID of a GPU, PCI address of others; '' if neither pod nor node reports it
--   core_percent          computing power; for rdma and fpga the percent of the device
--   memory_ratio_percent  memory as percent of the device's
--   problem               reason why a dimension stays unknown; '' without a problem
with device as (
    select
        columns('^(cluster|node_name|device_type|minor)$'),
        max(device_id) as device_id,
        arg_max(resources['koordinator.sh/gpu-memory'], observed_at) as memory_bytes
    from lake.koordinator_device
    group by all
),

allocated as (
    select
        granted.* similar to '^(cluster|namespace|pod|pod_uid|node_name|device_type|minor)$',
        max(granted.device_id) as device_id,
        arg_max(granted.amounts, granted.observed_at) as amounts,
        min(snapshot.observed_at) as start_at,
        max(snapshot.stands_until_at) as end_at
    from lake.pod_device as granted
    inner join lake.pod
        using (cluster, pod_uid, observed_at)
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'pods'
        and pod.phase not in ('Succeeded', 'Failed')
        and granted.source = 'koordinator'
    group by all
),

reported as (
    select
        allocated.* exclude (amounts, device_id),
        coalesce(nullif(allocated.device_id, ''), device.device_id, '') as device_id,
        device.memory_bytes as total_bytes,
        coalesce(
            allocated.amounts['koordinator.sh/gpu-core'],
            allocated.amounts['koordinator.sh/' || allocated.device_type],
            request.device_core_percent
        ) as core_percent,
        coalesce(allocated.amounts['koordinator.sh/gpu-memory'], request.device_memory_bytes) as memory_bytes,
        coalesce(allocated.amounts['koordinator.sh/gpu-memory-ratio'], request.device_memory_ratio_percent) as memory_ratio_percent
    from allocated
    left join device
        using (cluster, node_name, device_type, minor)
    left join facts.device_request as request
        on
            allocated.cluster = request.cluster
            and allocated.namespace = request.namespace
            and allocated.pod_uid = request.pod_uid
            and request.container = ''
            and allocated.device_type = request.device_type
)

select
    * exclude (start_at, end_at, total_bytes, memory_bytes, memory_ratio_percent),
    coalesce(memory_bytes, floor(memory_ratio_percent * total_bytes / 100)) as memory_bytes,
    coalesce(memory_ratio_percent, trunc(100 * memory_bytes / nullif(total_bytes, 0))) as memory_ratio_percent,
    case
        when device_type = 'gpu' and total_bytes is null and (memory_bytes is null or memory_ratio_percent is null)
            then 'the node does not say how much memory the device has'
        else ''
    end as problem,
    start_at,
    end_at
from reported
