-- Time without telemetry or labels of each node and day, by its state in Kubernetes: allocated to a pod, free or unavailable.
--
-- Allocation of the whole node (facts.node_allocation) less the observed time, limited to the time without data; period.ledger divides it among the
-- GPUs. Time of GPUs without labels that are active for longer than requests explain is not included, and reduces the free time.
--
-- grain:  cluster, node_name, day, state, namespace, pod, pod_uid
-- reads:  facts.ledger_day, facts.node_allocation, period.capacity, period.holder_day
-- params: since_at, until_at
with allocation as (
    select
        cluster,
        node_name,
        start_at::date as day,
        if(state in ('allocated', 'free'), state, 'unavailable') as kind,
        columns('^(state|namespace|pod|pod_uid)$'),
        sum(gpu_count * epoch_ms(least(end_at, $until_at::timestamp) - greatest(start_at, $since_at::timestamp))) / 1000 as gpu_seconds
    from facts.node_allocation
    where start_at < $until_at and end_at > $since_at
    group by all
),

gpu as (
    select
        capacity.*,
        coalesce(holder_day.lacking_seconds, 0) as unnamed_seconds,
        coalesce(holder_day.active_seconds, 0) as active_seconds
    from period.capacity as capacity
    left join period.holder_day as holder_day
        using (cluster, device_uuid, day)
),

-- A GPU on two nodes in a day counts on one of them; a pod counts on its own node.
placed as (
    select
        columns('^(cluster|day|namespace|pod|pod_uid)$'),
        only_one(min(node_name), max(node_name)) as pod_node_name
    from allocation
    where pod != ''
    group by all
),

seen as (
    select
        gpu.* similar to '^(cluster|day)$',
        coalesce(nullif(placed.pod_node_name, ''), gpu.node_name) as node_name,
        case when ledger.pod != '' then 'allocated' when ledger.outage != '' then 'unavailable' else 'free' end as kind,
        ledger.namespace,
        ledger.pod,
        if(placed.pod is null, '', ledger.pod_uid) as pod_uid,
        sum(ledger.gpu_seconds) as gpu_seconds
    from facts.ledger_day as ledger
    inner join gpu
        using (cluster, device_uuid, day)
    left join placed
        using (cluster, day, namespace, pod, pod_uid)
    where gpu.device_uuid != '' and (ledger.pod != '' or (ledger.activity != 'unseen' and gpu.unnamed_seconds = 0))
    group by all
),

allocated as (
    select
        columns('^(cluster|node_name|day)$'),
        sum(gpu_seconds) as gpu_seconds
    from (
        from allocation
        union all by name
        select * replace (-gpu_seconds as gpu_seconds)
        from seen
    ) as part
    where kind = 'allocated'
    group by all
),

node as (
    select
        gpu.* similar to '^(cluster|node_name|day)$',
        coalesce(sum(gpu.active_seconds) <= any_value(allocated.gpu_seconds), false) as covers_unnamed,
        if(covers_unnamed, 0, sum(gpu.unnamed_seconds)) as unexplained_seconds,
        sum(gpu.unseen_seconds) + if(covers_unnamed, sum(gpu.unnamed_seconds), 0) as unseen_seconds
    from gpu
    left join allocated
        using (cluster, node_name, day)
    group by all
    having unseen_seconds > 0
),

-- Seen time without the uid of a known pod.
of_name as (
    select * exclude (pod_uid)
    from seen
    where pod_uid = ''
),

-- Such time counts for all pods of the name.
rest as (
    select
        allocation.* exclude (kind, gpu_seconds),
        node.* similar to '^(covers_unnamed|unseen_seconds)$',
        greatest(0, allocation.gpu_seconds - if(allocation.pod_uid = '', 0, coalesce(seen.gpu_seconds, 0))) as own_seconds,
        coalesce(of_name.gpu_seconds, 0) + if(allocation.kind = 'free', node.unexplained_seconds, 0) as seen_seconds,
        own_seconds * greatest(0, 1 - seen_seconds / nullif(sum(own_seconds) over same_holder, 0)) as gpu_seconds
    from allocation
    inner join node
        using (cluster, node_name, day)
    left join seen
        using (cluster, node_name, day, kind, namespace, pod, pod_uid)
    left join of_name
        using (cluster, node_name, day, kind, namespace, pod)
    window same_holder as (
        partition by allocation.cluster, allocation.node_name, allocation.day, allocation.kind, allocation.namespace, allocation.pod
    )
)

select
    * exclude (own_seconds, seen_seconds, unseen_seconds) replace (gpu_seconds * least(1, unseen_seconds / sum(gpu_seconds) over same_node) as gpu_seconds),
    gpu_seconds / greatest(unseen_seconds, sum(gpu_seconds) over same_node) as unseen_ratio
from rest
where gpu_seconds > 1e-6
window same_node as (partition by cluster, node_name, day)
