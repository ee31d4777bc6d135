-- Node days on which Kubernetes and telemetry name different pods, or report different GPU-hours of a pod.
--
-- Labels are missing or stale, or placements had no data. Only nodes with pods in both sources are compared, on days fully in the window with data of
-- all their GPUs; only pods of half an hour or more. Hours differ by more than one hour plus a fifth of the requested hours. They are compared only
-- for pods alone on their GPUs, and not where units are replicas, because a replica is an average part of a GPU.
--
-- severity: warn
-- grain:  cluster, node_name, day
-- reads:  facts.node_allocation, period.capacity, period.ledger
-- source: facts.node_allocation against period.ledger
-- columns: cluster, node_name, day, unnamed_pods, unrequested_pods, different_pods
with seen as (
    select columns('^(cluster|node_name|day)$')
    from period.capacity
    group by all
    having bool_and(device_uuid != '') and sum(unseen_seconds) < 0.01 * sum(capacity_seconds) and min(capacity_seconds) > 86000
),

named as (
    select
        columns('^(cluster|node_name|day)$'),
        namespace || '/' || pod as pod,
        sum(gpu_hours) as gpu_hours,
        bool_and(hours_method = 'exclusive') as is_exclusive
    from period.ledger
    where pod != '' and bucket != 'reserved_idle' and not contains(hours_method, 'requests')
    group by all
),

requested as (
    select
        cluster,
        node_name,
        start_at::date as day,
        namespace || '/' || pod as pod,
        sum(epoch_ms(end_at - start_at)) / 3600000 as placed_hours,
        sum(gpu_count * epoch_ms(end_at - start_at)) / 3600000 as requested_hours,
        bool_and(replica_gpus = 1 or not contains(resources, '_gpu')) as is_sized
    from facts.node_allocation
    where state = 'allocated' and pod != ''
    group by all
),

reported_twice as (
    select seen.*
    from seen
    semi join named
        using (cluster, node_name, day)
    semi join requested
        using (cluster, node_name, day)
),

compared as (
    select
        *,
        named.gpu_hours is null and requested.placed_hours >= 0.5 as is_unnamed,
        requested.placed_hours is null and named.gpu_hours >= 0.5 as is_unrequested,
        named.is_exclusive and requested.is_sized and abs(named.gpu_hours - requested.requested_hours) > 1 + 0.2 * requested.requested_hours as is_different
    from named
    full join requested
        using (cluster, node_name, day, pod)
    semi join reported_twice
        using (cluster, node_name, day)
)

select
    columns('^(cluster|node_name|day)$'),
    coalesce(string_agg(pod, ', ' order by pod) filter (where is_unnamed), '') as unnamed_pods,
    coalesce(string_agg(pod, ', ' order by pod) filter (where is_unrequested), '') as unrequested_pods,
    coalesce(
        string_agg(pod || ' (' || round(requested_hours, 1) || ', ' || round(gpu_hours, 1) || ')', ', ' order by pod) filter (where is_different), ''
    ) as different_pods
from compared
where is_unnamed or is_unrequested or is_different
group by all
