-- Time without telemetry of each node and day by what Kubernetes knows of it: allocated to whom, free, unavailable.
--
-- What requests and placements say of the whole node (facts.node_allocation) less what was seen of its GPUs, at most the time without
-- telemetry. Which of the node's GPUs a pod had is not known: each has an equal part of every pod.
--
-- grain:  cluster, node_name, day, state, namespace, pod, pod_uid
-- reads:  facts.ledger_day, facts.node_allocation, period.capacity
-- params: since_at, until_at
-- source: facts.node_allocation; facts.ledger_day
-- columns:
--   unseen_ratio  the same ÷ s without telemetry of the node's GPUs
with said as (
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

node as (
    select
        columns('^(cluster|node_name|day)$'),
        sum(unseen_seconds) as unseen_seconds
    from period.capacity
    group by all
    having sum(unseen_seconds) > 0
),

place as (
    select distinct columns('^(cluster|node_name|device_uuid|day)$')
    from period.capacity
    where device_uuid != ''
),

seen as (
    select
        place.cluster,
        place.node_name,
        place.day,
        case when ledger.pod != '' then 'allocated' when ledger.outage != '' then 'unavailable' else 'free' end as kind,
        ledger.namespace,
        ledger.pod,
        sum(ledger.gpu_seconds) as gpu_seconds
    from facts.ledger_day as ledger
    inner join place
        using (cluster, device_uuid, day)
    where ledger.activity != 'unseen' or ledger.pod != ''
    group by all
),

rest as (
    select
        said.* exclude (kind, gpu_seconds),
        node.unseen_seconds,
        said.gpu_seconds * greatest(0, 1 - coalesce(seen.gpu_seconds, 0) / sum(said.gpu_seconds) over same_holder) as gpu_seconds
    from said
    inner join node
        using (cluster, node_name, day)
    left join seen
        using (cluster, node_name, day, kind, namespace, pod)
    window same_holder as (
        partition by said.cluster, said.node_name, said.day, said.kind, said.namespace, said.pod
    )
)

select
    * exclude (unseen_seconds, gpu_seconds),
    gpu_seconds * least(1, unseen_seconds / sum(gpu_seconds) over same_node) as gpu_seconds,
    gpu_seconds / greatest(unseen_seconds, sum(gpu_seconds) over same_node) as unseen_ratio
from rest
where gpu_seconds > 1e-6
window same_node as (partition by cluster, node_name, day)
