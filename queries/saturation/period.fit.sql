-- Needs of a workload's containers that are alone on one GPU, and the smallest MIG profile and model in which each container fits.
--
-- The need is SM activity, occupancy and DRAM activity of the busiest hour, and the largest memory of any pod, with headroom fit_headroom_ratio. A
-- profile fits where its parts of the SMs, of the memory bandwidth and of the memory are enough. The fitting profile with the most instances per GPU
-- is chosen. Smaller models are models of the cluster, compared by dense FP16 throughput, memory bandwidth and memory. Not included: several GPUs at
-- once (MIG instances cannot communicate with each other), shared GPUs, instances, and containers that were never active.
--
-- grain:  cluster, namespace, workload_kind, workload, container, gpu_model
-- reads:  facts.container_day, facts.device_day, facts.ownership, period.workload
-- parts:  500000 rows of facts.container_day by cluster, namespace
-- params: figure_min_coverage_ratio, fit_headroom_ratio, gpu_models, mig_profiles, since_at, until_at
-- source: facts.container_hour; geometry: NVIDIA's MIG user guide; models: data sheets (queries/catalog)
-- columns:
--   pod                  pod; '' where there are several
--   pod_uid              uid of the pod; '' where there are several
--   node_name            node; '' where there are several
--   device_uuid          UUID of the GPU; '' where there are several
--   pod_count            pods that were alone on a GPU of the model
--   allocated_gpu_hours  h in which the containers' GPUs had data while allocated
with profile as (
    select
        entry.gpu_model,
        entry.profile,
        entry.compute_slices::double / entry.compute_slices_total::double as sm_part,
        entry.memory_slices::double / entry.memory_slices_total::double as memory_part,
        entry.instances_max::bigint as instance_count
    from (
        select unnest(from_json($mig_profiles::json, '[{
            "gpu_model": "VARCHAR", "profile": "VARCHAR", "compute_slices": "VARCHAR", "compute_slices_total": "VARCHAR",
            "memory_slices": "VARCHAR", "memory_slices_total": "VARCHAR", "instances_max": "VARCHAR"
        }]')) as entry
    ) as listed
),

model as (
    select
        entry.gpu_model,
        entry.name,
        entry.memory_gigabytes::double * 1e9 as memory_bytes,
        entry.memory_gigabytes_per_second::double as bandwidth,
        entry.fp16_tensor_teraflops::double as teraflops
    from (
        select unnest(from_json($gpu_models::json, '[{
            "gpu_model": "VARCHAR", "name": "VARCHAR", "memory_gigabytes": "VARCHAR", "memory_gigabytes_per_second": "VARCHAR",
            "fp16_tensor_teraflops": "VARCHAR"
        }]')) as entry
    ) as listed
),

-- Models of the cluster that the catalog has; if several names match, the longest counts.
there as (
    select
        device_day.cluster,
        device_day.gpu_model,
        arg_max(
            { 'memory_bytes': model.memory_bytes, 'bandwidth': model.bandwidth, 'teraflops': model.teraflops },
            length(model.gpu_model)
        ) as spec
    from facts.device_day
    inner join model on device_day.gpu_model glob model.gpu_model
    group by device_day.cluster, device_day.gpu_model
),

device as (
    select
        columns('^(cluster|device_uuid)$'),
        arg_max(columns('^(node_name|gpu_model)$'), last_hour_at) as "\0"
    from facts.device_day
    group by all
),

-- Pods with exactly one GPU throughout: a pod that gets another GPU after a restart is left out too.
alone as (
    select columns('^(cluster|namespace|pod|pod_uid)$')
    from facts.ownership
    where start_at < $until_at and end_at > $since_at
    group by cluster, namespace, pod, pod_uid
    having
        min(device_uuid) = max(device_uuid)
        and bool_and(sharing_mode = 'exclusive' and gpu_instance_id = '')
),

needed as (
    select
        allocated.cluster,
        allocated.namespace,
        workload.workload_kind,
        workload.workload,
        allocated.container,
        device.gpu_model,
        only_one(min(allocated.pod), max(allocated.pod)) as pod,
        only_one(min(allocated.pod_uid), max(allocated.pod_uid)) as pod_uid,
        only_one(min(device.node_name), max(device.node_name)) as node_name,
        only_one(min(allocated.device_uuid), max(allocated.device_uuid)) as device_uuid,
        count(distinct allocated.pod || '/' || allocated.pod_uid) as pod_count,
        sum(allocated.observed_seconds) / 3600 as allocated_gpu_hours,
        $figure_min_coverage_ratio * sum(allocated.observed_seconds) as needed_seconds,
        sum(columns('^(sm_active|sm_occupancy|dram_active|fb_used|memory)_seen_seconds$')),
        if(sum(allocated.sm_active_seen_seconds) >= needed_seconds, max(allocated.busiest_sm_active_ratio), null) as busiest_sm_active_ratio,
        if(sum(allocated.sm_occupancy_seen_seconds) >= needed_seconds, max(allocated.busiest_sm_occupancy_ratio), null) as busiest_sm_occupancy_ratio,
        if(sum(allocated.dram_active_seen_seconds) >= needed_seconds, max(allocated.busiest_dram_active_ratio), null) as busiest_dram_active_ratio,
        max(allocated.sm_active_ratio_max) as sm_active_ratio_max,
        if(sum(allocated.fb_used_seen_seconds) >= needed_seconds, max(allocated.fb_used_bytes_max), null) as memory_used_bytes_max,
        if(sum(allocated.memory_seen_seconds) >= needed_seconds, max(allocated.memory_used_ratio_max), null) as memory_used_ratio_max,
        min(allocated.first_hour_at) as first_seen_at
    from facts.container_day as allocated
    inner join alone
        using (cluster, namespace, pod, pod_uid)
    inner join period.workload as workload
        using (cluster, namespace, pod, pod_uid)
    inner join device
        using (cluster, device_uuid)
    group by allocated.cluster, allocated.namespace, workload.workload_kind, workload.workload, allocated.container, device.gpu_model
),

judged as (
    select
        *,
        busiest_sm_active_ratio + busiest_sm_occupancy_ratio + busiest_dram_active_ratio + memory_used_bytes_max + memory_used_ratio_max is not null as is_known,
        -- Occupancy counts the warps of all SMs: it is above SM activity only if SM activity is wrong.
        (1 + $fit_headroom_ratio) * greatest(busiest_sm_active_ratio, busiest_sm_occupancy_ratio) as sm_need,
        (1 + $fit_headroom_ratio) * busiest_dram_active_ratio as dram_need,
        (1 + $fit_headroom_ratio) * memory_used_bytes_max as memory_need
    from needed
),

fitting as (
    select
        judged.* similar to '^(cluster|namespace|workload_kind|workload|container|gpu_model)$',
        arg_max(
            { 'name': profile.profile, 'sm_part': profile.sm_part, 'instance_count': profile.instance_count },
            (profile.instance_count, -profile.sm_part, -profile.memory_part)
        ) as chosen
    from judged
    inner join profile on judged.gpu_model glob profile.gpu_model
    where
        judged.is_known
        and judged.sm_need <= profile.sm_part
        and judged.dram_need <= profile.memory_part
        and (1 + $fit_headroom_ratio) * judged.memory_used_ratio_max <= profile.memory_part
    group by all
),

smaller as (
    select
        judged.* similar to '^(cluster|namespace|workload_kind|workload|container|gpu_model)$',
        arg_min(other.gpu_model, (other.spec.teraflops, other.spec.memory_bytes, other.gpu_model)) as smaller_model
    from judged
    inner join there as own
        using (cluster, gpu_model)
    inner join there as other on judged.cluster = other.cluster
    where
        judged.is_known
        and other.spec.teraflops < own.spec.teraflops
        and other.spec.memory_bytes <= own.spec.memory_bytes
        and judged.sm_need * own.spec.teraflops <= other.spec.teraflops
        and judged.dram_need * own.spec.bandwidth <= other.spec.bandwidth
        and judged.memory_need <= other.spec.memory_bytes
    group by all
)

select
    judged.* exclude (needed_seconds, sm_need, dram_need, memory_need),
    there.spec is not null as is_catalogued,
    coalesce(fitting.chosen.name, '') as profile,
    fitting.chosen.instance_count,
    judged.sm_active_ratio_max <= fitting.chosen.sm_part as is_peak_within,
    coalesce(smaller.smaller_model, '') as smaller_model
from judged
left join there
    using (cluster, gpu_model)
left join fitting
    using (cluster, namespace, workload_kind, workload, container, gpu_model)
left join smaller
    using (cluster, namespace, workload_kind, workload, container, gpu_model)
-- A workload without any activity is idle, not oversized; an unknown one stays, marked as unknown.
where coalesce(judged.busiest_sm_active_ratio, 1) >= 0.001
