-- Sharing of GPUs by replicas on each node, with its evidence.
--
-- Labels of GPU feature discovery come first (kube-state-metrics shows them if its allowlist names them). Without them, a node shares its GPUs if it
-- advertises more nvidia.com/gpu than it has GPUs and MIG instances, unless its metrics show a GPU only while a container has it. Allocatable units
-- count, where known, because the capacity includes unhealthy GPUs. Replicas are never devices, so nothing is multiplied by them (gpu-operator 684).
-- A label that changes within the day counts as sharing on that day.
--
-- grain:  cluster, node_name
-- reads:  day.kube_series, day.node_snapshot, facts.device_signal, lake.device_label, lake.sample
-- source: kube_node_labels (nvidia.com/gpu.sharing-strategy, nvidia.com/gpu.replicas); kube_node_status_capacity or _allocatable; snapshots
with reported as (
    select
        *,
        case
            when sharing_strategy is not null then sharing_strategy
            when try_cast(replicas as integer) > 1 then 'shared'
            when replicas is not null then 'none'
        end as strategy
    from (
        select * exclude (series_id)
        from day.kube_series
        where signal = 'kube_node_labels'
        union all by name
        select
            cluster,
            node_name,
            labels['label_nvidia_com_gpu_sharing_strategy'] as sharing_strategy,
            labels['label_nvidia_com_gpu_replicas'] as replicas
        from day.node_snapshot
    ) as label
),

labelled as (
    select
        cluster,
        node_name,
        max_by(strategy, list_position(['none', 'shared', 'mps', 'time-slicing'], strategy)) as strategy
    from reported
    where strategy is not null
    group by cluster, node_name
),

amount as (
    select
        series.*,
        sample.value
    from lake.sample
    inner join day.kube_series as series
        using (cluster, series_id)
    where
        series.signal in ('kube_node_status_capacity', 'kube_node_status_allocatable')
        and series.resource = 'nvidia_com_gpu'
    union all by name
    select
        *,
        capacity['nvidia_com_gpu'] as value
    from day.node_snapshot
),

allocatable as (
    select
        columns('^(cluster|node_name)$'),
        coalesce(max(value) filter (where signal = 'kube_node_status_allocatable'), max(value)) as allocatable_count
    from amount
    where value is not null
    group by cluster, node_name
),

device as (
    select
        cluster,
        device_uuid,
        unnest(list(distinct node_name)) as node_name,
        greatest(1, count(distinct gpu_instance_id) filter (where gpu_instance_id != '')) as part_count
    from lake.device_label
    group by cluster, device_uuid
),

of_containers as (
    select columns('^(cluster|node_name)$')
    from facts.device_signal
    where source_metric != ''
    group by all
    having bool_and(is_of_containers(source_metric))
),

owned as (
    select
        cluster,
        node_name,
        sum(part_count) as owned_count
    from device
    anti join of_containers
        using (cluster, node_name)
    group by cluster, node_name
)

select
    cluster,
    node_name,
    coalesce(labelled.strategy, if(allocatable.allocatable_count > owned.owned_count, 'shared', 'none')) as strategy,
    case
        when labelled.strategy is not null then 'node label says ' || labelled.strategy
        when allocatable.allocatable_count > owned.owned_count then 'node has more allocatable GPUs than devices'
        else 'node has as many allocatable GPUs as devices'
    end as evidence
from labelled
full join allocatable
    using (cluster, node_name)
left join owned
    using (cluster, node_name)
where node_name != '' and (labelled.strategy is not null or owned.owned_count is not null)
