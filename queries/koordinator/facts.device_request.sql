-- Requests of each container and pod in Koordinator's dimensions: percent of GPU cores, bytes, percent of memory.
--
-- A whole device is 100 %. nvidia.com/gpu: 2 is 200 % of both; koordinator.sh/gpu: 50 is 50 % of both. gpu.shared gives the number of devices, else
-- the share of memory does, never computing power. Each device gets an equal part, cut to whole numbers. Memory not requested in bytes is known once
-- the device is known (day.device_grant). Koordinator judges the pod as a whole; each container is reported by the same rules.
--
-- revision: 2
-- grain:  cluster, namespace, pod, pod_uid, container, device_type
-- reads:  day.accelerator_resource, day.state_snapshot, lake.pod, lake.pod_container
-- source: Pod requests; Koordinator's device resources, versions 0.6 to 1.7, names of before 1.2 under today's
-- columns: cluster, namespace, pod, pod_uid, container, device_type, requested_as, device_count, gpu_core_percent, gpu_memory_bytes,
--          gpu_memory_ratio_percent, device_core_percent, device_memory_bytes, device_memory_ratio_percent, is_shared, problem, start_at, end_at
--   container                    container; '' for the whole pod
--   device_count                 devices; null if the request is invalid
--   is_shared                    other pods may use the rest of the device
--   start_at                     UTC, first snapshot with the pod
--   end_at                       UTC, end of the last snapshot's interval
with pod_snapshot as (
    select
        pod.* similar to '^(cluster|namespace|pod|pod_uid)$',
        arg_max(pod.effective_requests, pod.observed_at) as requests,
        min(snapshot.observed_at) as start_at,
        max(snapshot.stands_until_at) as end_at
    from lake.pod
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where snapshot.kind = 'pods'
    group by all
),

container as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        arg_max(requests, observed_at) as requests
    from lake.pod_container
    group by all
),

entry as (
    select
        * exclude (requests, start_at, end_at),
        '' as container,
        unnest(map_entries(requests)) as requested
    from pod_snapshot
    union all by name
    select
        * exclude (requests),
        unnest(map_entries(requests)) as requested
    from container
),

part as (
    select
        entry.* exclude (requested),
        case name.resource when 'koordinator.sh/rdma' then 'rdma' when 'koordinator.sh/fpga' then 'fpga' else 'gpu' end as device_type,
        name.resource,
        case
            when name.resource in ('nvidia.com/gpu', 'amd.com/gpu', 'dcu.com/gpu', 'hygon.com/gpu') then 'vendor'
            when starts_with(name.resource, 'koordinator.sh/') then replace(substring(name.resource, 16), 'gpu-', '')
            when starts_with(name.resource, 'huawei.com/npu-') then substring(name.resource, 12)
        end as part,
        sum(entry.requested.value) as amount
    from entry
    inner join day.accelerator_resource as name
        on
            entry.cluster = name.cluster
            and entry.requested.key = name.written_as
    where entry.requested.value > 0
    group by all
),

request as (
    select
        * exclude (resource, part, amount),
        string_agg(resource || ': ' || printf('%.0f', amount), ', ' order by resource) as requested_as,
        list_sort(list(part)) as parts,
        max(amount) filter (where part in ('gpu', 'rdma', 'fpga')) as whole_percent,
        max(amount) filter (where part = 'vendor') as vendor_count,
        max(amount) filter (where part = 'core') as core_percent,
        max(amount) filter (where part = 'memory') as memory_bytes,
        max(amount) filter (where part = 'memory-ratio') as ratio_percent,
        max(amount) filter (where part = 'gpu.shared') as shared_count,
        max(amount) filter (where part = 'npu-dvpp') as dvpp_percent,
        bool_or(part like 'npu-%') as is_npu
    from part
    where part is not null
    group by all
),

dimension as (
    select
        *,
        coalesce(core_percent, whole_percent, 100 * vendor_count) as all_core_percent,
        case when device_type = 'gpu' then coalesce(ratio_percent, whole_percent, 100 * vendor_count) end as all_ratio_percent,
        case
            when shared_count is not null then shared_count
            when coalesce(all_ratio_percent, all_core_percent) > 100 and (all_ratio_percent is not null or device_type != 'gpu')
                then floor(coalesce(all_ratio_percent, all_core_percent) / 100)
            else 1
        end as all_device_count,
        len([percent for percent in [whole_percent, core_percent, ratio_percent] if percent > 100 and percent % 100 != 0]) > 0 as is_uneven
    from request
),

judged as (
    select
        *,
        case
            when list_contains([
                ['vendor'], ['gpu'], ['memory'], ['memory-ratio'], ['core', 'memory'], ['core', 'memory-ratio'], ['memory-ratio', 'npu-core'],
                ['gpu.shared', 'memory'], ['gpu.shared', 'memory-ratio'], ['core', 'gpu.shared', 'memory'],
                ['core', 'gpu.shared', 'memory-ratio'], ['gpu.shared', 'memory', 'npu-core', 'npu-cpu'],
                ['gpu.shared', 'memory', 'npu-core', 'npu-cpu', 'npu-dvpp'], ['rdma'], ['fpga']
            ], parts) = false then 'no combination that Koordinator takes'
            when shared_count is null and is_uneven then 'above 100 and no multiple of 100'
            when is_npu and shared_count != 1 then 'an NPU is shared one at a time'
            when dvpp_percent > 100 then 'npu-dvpp is above 100'
            when shared_count is not null and not is_npu and (
                core_percent % shared_count != 0 or ratio_percent % shared_count != 0
            ) then 'no multiple of gpu.shared'
            when shared_count is not null and greatest(core_percent, ratio_percent) > 100 * shared_count then 'above 100 of each shared device'
            when coalesce(all_core_percent, 0) > 100 * all_device_count then 'more computing power than its one device has'
            else ''
        end as problem
    from dimension
),

sized as (
    select
        *,
        if(problem in ('', 'more computing power than its one device has'), all_device_count, null)::bigint as device_count
    from judged
)

select
    sized.* similar to '^(cluster|namespace|pod|pod_uid|container|device_type|requested_as|device_count)$',
    sized.all_core_percent as gpu_core_percent,
    sized.memory_bytes as gpu_memory_bytes,
    sized.all_ratio_percent as gpu_memory_ratio_percent,
    floor(sized.all_core_percent / sized.device_count) as device_core_percent,
    floor(sized.memory_bytes / sized.device_count) as device_memory_bytes,
    floor(sized.all_ratio_percent / sized.device_count) as device_memory_ratio_percent,
    sized.device_type = 'gpu' and (
        sized.memory_bytes is not null or coalesce(floor(sized.all_ratio_percent / sized.device_count) < 100, false)
    ) as is_shared,
    sized.problem,
    pod_snapshot.start_at,
    pod_snapshot.end_at
from sized
inner join pod_snapshot
    using (cluster, namespace, pod_uid)
