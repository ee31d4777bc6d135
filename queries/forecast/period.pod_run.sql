-- Run of each pod on GPUs for a replay of placements: request, creation, node and duration.
--
-- A pod that runs at the end of the window has no end. The wait of a pod that was never placed ends at its last observation. On nodes without
-- requests (claims, gaps between snapshots), telemetry names the pods. Their GPUs are the ledger's mean. The same holds on nodes that share some of
-- their GPUs, where a request may be for a whole or a shared GPU.
--
-- grain:  cluster, namespace, pod, pod_uid
-- reads:  facts.ledger_day, facts.node_allocation, facts.ownership, facts.pod_wait, period.capacity
-- params: since_at, until_at
-- source: facts.node_allocation, else facts.ownership, for places and times, facts.pod_wait for creation and requests
-- columns: cluster, namespace, pod, pod_uid, resource, wanted_model, requested_gpus, placed_gpus, requested_units, unit_gpus, cpu_cores,
--          host_memory_bytes, node_name, created_at, start_at, end_at
--   resource         resource that it requests, as kube-state-metrics writes it; '' where unknown
--   requested_gpus   GPUs allocated to it; for a pod that was never placed, its request
--   placed_gpus      GPUs of its request on that node; units that are replicas of some of its GPUs count by their mean
--   requested_units  units of the resource where they alone make these GPUs; null where other resources determine more of them
--   unit_gpus        GPUs in a unit; null where the node determines it
--   node_name        its first node; '' for none
--   created_at       UTC, its creation; null where unknown
--   start_at         UTC, start of its allocation, at the earliest the window's start; null for none
--   end_at           UTC, end of its allocation, or of its wait; null where it reaches the window's end
with requested as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        arg_min(node_name, start_at) as node_name,
        coalesce(max(gpu_count) filter (where is_claim), 0) + coalesce(max(gpu_count) filter (where not is_claim), 0) as gpu_count,
        max(columns('^(replica_gpus|cpu_cores|host_memory_bytes)$')),
        greatest(min(start_at), $since_at::timestamp) as start_at,
        least(max(end_at), $until_at::timestamp) as end_at
    from facts.node_allocation
    where state = 'allocated' and pod != '' and start_at < $until_at and end_at > $since_at
    group by all
),

-- The same rule as for requests of pods without a node (day.gpu_request).
common as (
    select
        cluster,
        max(replica_gpus) as replica_gpus
    from facts.node_allocation
    group by all
),

exact as (
    select columns('^(cluster|node_name)$')
    from facts.node_allocation
    group by all
    having bool_and(coalesce(abs(1 / replica_gpus - round(1 / replica_gpus)) < 1e-9, true))
),

silent as (
    select distinct capacity.* similar to '^(cluster|node_name|device_uuid)$'
    from period.capacity as capacity
    anti join exact
        using (cluster, node_name)
    where capacity.device_uuid != ''
),

had as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        sum(gpu_seconds) as gpu_seconds
    from facts.ledger_day
    semi join silent
        using (cluster, device_uuid)
    left join requested
        using (cluster, namespace, pod, pod_uid)
    where
        pod != '' and not is_reserved
        -- The mean of a pod's known time has no seconds of other days.
        and coalesce(day + interval 1 day > requested.start_at and day < requested.end_at, true)
    group by all
),

named as (
    select
        held.* similar to '^(cluster|namespace|pod|pod_uid)$',
        arg_min(silent.node_name, held.start_at) as node_name,
        greatest(min(held.start_at), $since_at::timestamp) as start_at,
        least(max(held.end_at), $until_at::timestamp) as end_at
    from facts.ownership as held
    inner join silent
        using (cluster, device_uuid)
    where held.start_at < $until_at and held.end_at > $since_at
    group by all
),

there as (
    select
        * exclude (gpu_count),
        gpu_count as placed_gpus
    from requested
    union all by name
    select
        *,
        'unknown' as resource
    from named
    semi join had
        using (cluster, namespace, pod, pod_uid)
    anti join requested
        using (cluster, namespace, pod, pod_uid)
),

-- Days that were never exported are not part of any average.
lost as (
    select
        cluster,
        list(distinct day) as days
    from period.capacity
    where unseen_cause = 'not_exported'
    group by all
),

run as (
    select
        there.* exclude (placed_gpus),
        list_sum([overlap_ms(start_at, end_at, day, day + interval 1 day) for day in lost.days]) as lost_ms,
        coalesce(had.gpu_seconds / (epoch(end_at - start_at) - coalesce(lost_ms, 0) / 1000), placed_gpus) as gpu_count,
        coalesce(placed_gpus, gpu_count) as placed_gpus
    from there
    left join had
        using (cluster, namespace, pod, pod_uid)
    left join lost
        using (cluster)
),

request as (
    select
        columns('^(cluster|namespace|pod|pod_uid)$'),
        regexp_replace(resource, '[^a-zA-Z0-9_]', '_', 'g') as resource,
        coalesce(wanted_model, 'unknown') as wanted_model,
        gpu_units(resource) as unit_gpus,
        columns('^(requested_gpus|requested_units|cpu_cores|host_memory_bytes|created_at|scheduled_at|waiting_until_at)$')
    from facts.pod_wait
    where created_at < $until_at
    qualify row_number() over (partition by cluster, namespace, pod, pod_uid order by end_at desc, scheduled_at desc nulls last) = 1
)

select
    columns('^(cluster|namespace|pod|pod_uid)$'),
    coalesce(request.resource, run.resource, '') as resource,
    coalesce(request.wanted_model, 'unknown') as wanted_model,
    coalesce(run.gpu_count, request.requested_gpus) as requested_gpus,
    coalesce(run.placed_gpus, request.requested_gpus) as placed_gpus,
    if(
        abs(
            request.requested_units * coalesce(nullif(request.unit_gpus, 1), run.replica_gpus, common.replica_gpus)
            - coalesce(run.placed_gpus, request.requested_gpus)
        ) < 1e-6,
        request.requested_units, null
    ) as requested_units,
    if(request.unit_gpus = 1, null, request.unit_gpus) as unit_gpus,
    coalesce(request.cpu_cores, run.cpu_cores) as cpu_cores,
    coalesce(request.host_memory_bytes, run.host_memory_bytes) as host_memory_bytes,
    coalesce(run.node_name, '') as node_name,
    -- Where allocation is known only from some time after the placement (Kubernetes' data begins later), the wait stays as long as it was.
    if(
        request.scheduled_at between $since_at::timestamp and run.start_at,
        run.start_at - (request.scheduled_at - request.created_at), request.created_at
    ) as created_at,
    if(request.scheduled_at < $since_at, $since_at::timestamp, run.start_at) as start_at,
    nullif(least(coalesce(run.end_at, request.waiting_until_at), $until_at::timestamp), $until_at::timestamp) as end_at
from run
full join request
    using (cluster, namespace, pod, pod_uid)
left join common
    using (cluster)
where
    coalesce(run.gpu_count, request.requested_gpus) > 0
    and (run.start_at is not null or (request.scheduled_at is null and request.waiting_until_at > $since_at))
