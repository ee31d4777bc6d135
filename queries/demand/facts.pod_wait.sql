-- Wait of each pod that requested accelerators: created, placed, running.
--
-- Kubernetes reports these times in whole seconds. The first scrape of a running pod is not used. A pod with several resources waits for all
-- of them; resource names one. Time behind scheduling gates is part of the wait. Claims that cannot be listed may be for GPUs or not: a pod with
-- such claims alone has a row of unknown size, with the resource resourceclaims.resource.k8s.io.
--
-- revision: 15
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  day.gpu_node, day.gpu_request, day.host_amount, day.kube_series, day.placement, day.request,
--          day.state_snapshot, lake.pod, lake.sample
-- source: Pod status.conditions and containerStatuses; kube_pod_created, kube_pod_status_scheduled_time,
--         kube_pod_status_phase, kube_pod_container_state_started
-- columns: cluster, namespace, pod, pod_uid, resource, requested_units, requested_gpus, node_name, gpu_model, created_at, scheduled_at, running_at,
--          waiting_until_at, is_refused, wanted_model, refusal, cpu_cores, host_memory_bytes, source, start_at, end_at
--   resource          requested resource; of several, devices before shares and memory
--   requested_gpus    GPUs under all resource names (day.gpu_request); null where units have no size in GPUs
--   node_name         node of the pod; '' while it has none
--   gpu_model         model of the node's GPUs; '' without a node or where unknown
--   running_at        UTC, first start of a container; null where none started or unknown
--   wanted_model      models of the nodes that its node selector and affinity allow; any; unknown without a snapshot of the pod
--   refusal           scheduler's reasons other than GPUs: affinity, cpu, gate, memory, other, quota, taint with its key; '' where none
--   end_at            UTC, end of the known wait
with request as (
    select * replace (if(is_claim, claim_units, effective_units) as effective_units)
    from day.request
    where pod != ''
),

pod as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        arg_min(resource, (
            case
                when resource similar to 'koordinator.sh/(gpu|gpu-core)' then 1
                when resource like 'koordinator.sh/gpu-memory%' then 2
                when resource similar to '.*(rdma|fpga|gpumem|gpucores|memory|mem).*' then 3
                else 0
            end,
            resource
        )) as resource,
        max(node_name) as node_name,
        max(end_at) filter (where stage in ('gated', 'unscheduled', 'refused')) as waiting_until_at,
        bool_or(coalesce(stage = 'refused', false)) as is_refused,
        -- Series show when a pod was bound only if they showed it before.
        if(
            bool_or(source = 'kube-state-metrics' and stage in ('unscheduled', 'refused')),
            min(start_at) filter (where source = 'kube-state-metrics' and stage in ('bound', 'placed')), null
        ) as seen_bound_at,
        max(source) as source
    from request
    group by all
    union all by name
    select
        pod.* similar to '^(cluster|namespace|pod|pod_uid)$',
        'resourceclaims.resource.k8s.io' as resource,
        max(pod.node_name) as node_name,
        max(snapshot.stands_until_at) filter (where pod.node_name = '') as waiting_until_at,
        coalesce(bool_or(pod.unschedulable_at is not null and pod.unschedulable_reason != 'SchedulingGated'), false) as is_refused,
        'snapshot' as source
    from lake.pod
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'pods'
        and cardinality(pod.resource_claims) > 0
        and (pod.cluster, pod.pod_uid) not in (select (request.cluster, request.pod_uid) from request)
        and pod.cluster not in (
            select listed.cluster from day.state_snapshot as listed
            where listed.kind = 'resourceclaims.resource.k8s.io'
        )
    group by all
),

sized as (
    select
        columns('^(cluster|pod_uid|resource)$'),
        max(effective_units) as requested_units
    from request
    group by all
),

gpu as (
    select
        columns('^(cluster|pod_uid)$'),
        if(count(*) = count(gpus), sum(gpus), null) as gpus
    from (
        select
            columns('^(cluster|pod_uid|resource)$'),
            max(coalesce(claim_units, effective_units)) as gpus
        from day.gpu_request
        group by all
    ) as named
    group by all
),

listed as (
    select
        columns('^(cluster|pod_uid)$'),
        min(created_at)::timestamp as created_at,
        max(scheduled_at)::timestamp as scheduled_at,
        min(running_at)::timestamp as running_at,
        arg_max(placement, observed_at) as placement,
        coalesce(arg_max(unschedulable_message, observed_at) filter (where unschedulable_message != ''), '') as message,
        case
            when arg_max(unschedulable_reason, observed_at) = 'SchedulingGated'
                then if(arg_max(labels, observed_at)['kueue.x-k8s.io/queue-name'] is null, 'gate', 'quota')
        end as gate
    from lake.pod
    group by all
),

reported as (
    select
        series.cluster,
        series.pod_uid,
        min(epoch_ms((sample.value * 1000)::bigint)) filter (where series.signal = 'kube_pod_created') as created_at,
        min(epoch_ms((sample.value * 1000)::bigint)) filter (where series.signal = 'kube_pod_status_scheduled_time') as scheduled_at,
        min(epoch_ms((sample.value * 1000)::bigint)) filter (where series.signal = 'kube_pod_container_state_started') as first_run_at,
        -- A container that starts after its pod was running is a restart. One minute, because clocks may differ.
        min(sample.seen_at) filter (where series.phase = 'Running' and sample.value = 1) as seen_running_at,
        if(seen_running_at < first_run_at - interval 1 minute, null, first_run_at) as running_at
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where series.signal in ('kube_pod_created', 'kube_pod_status_scheduled_time', 'kube_pod_container_state_started') or series.phase = 'Running'
    group by all
),

timed as (
    select
        pod.* similar to '^(cluster|namespace|pod|pod_uid|resource)$',
        sized.requested_units,
        gpu.gpus as requested_gpus,
        pod.node_name,
        coalesce(node.gpu_model, '') as gpu_model,
        coalesce(listed.created_at, reported.created_at) as created_at,
        coalesce(listed.scheduled_at, reported.scheduled_at, pod.seen_bound_at) as scheduled_at,
        coalesce(listed.running_at, reported.running_at) as running_at,
        pod.waiting_until_at,
        pod.is_refused,
        case
            when listed.pod_uid is null then 'unknown'
            when listed.placement = '' then 'any'
            else coalesce(placement.wanted_model, 'unknown')
        end as wanted_model,
        coalesce(listed.gate, array_to_string(refusals(listed.message, coalesce(placement.is_selective, true)), ', '), '') as refusal,
        host.cpu_cores,
        host.host_memory_bytes,
        pod.source
    from pod
    left join sized
        using (cluster, pod_uid, resource)
    left join gpu
        using (cluster, pod_uid)
    left join listed
        using (cluster, pod_uid)
    left join reported
        using (cluster, pod_uid)
    left join day.gpu_node as node
        using (cluster, node_name)
    left join day.placement as placement
        using (cluster, placement)
    left join day.host_amount as host
        on pod.cluster = host.cluster and pod.pod_uid = host.pod_uid and host.pod_uid != ''
    where coalesce(listed.created_at, reported.created_at) is not null
)

select
    *,
    created_at as start_at,
    greatest(created_at, scheduled_at, running_at, if(scheduled_at is null, waiting_until_at, null)) as end_at
from timed
