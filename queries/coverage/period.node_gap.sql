-- Devices that Kubernetes lists and no exporter reports, per node and day of the window: unknown time.
--
-- A node without device series counts with its physical devices where a label has their number, else with its capacity (replicas of a shared device
-- cannot be distinguished then). Lower bounds are: with MIG slices, the minimum number of devices for them; without a listed resource, one device. A
-- node with some device series has missing devices only where a label has their number, or where all its series exist only while a container has the
-- device: then its capacity counts. A device with data on several nodes on a day is not missing on any of them. There is no gap on a day on which a
-- device has a host name that is no node's: that host may be any of the nodes.
--
-- grain:  cluster, node_name, day, reason
-- reads:  facts.device_day, facts.device_signal, facts.node_day, period.device_day
-- params: since_at, until_at
-- source: kube-state-metrics and snapshots by facts.node_day; device series by period.device_day
-- columns:
--   reason           no_exporter, no_driver, or device_unseen where other devices of the node have data
--   device_count     devices without data
--   unknown_seconds  s of these devices, from the node's listing until it left or the day ended
--   evidence         source of these values
with host as (
    select
        columns('^(cluster|node_name|day)$'),
        count(distinct device_uuid) as device_count
    from facts.device_day as seen
    full join period.device_day
        using (cluster, node_name, device_uuid, day)
    group by all
),

-- A node's state may have several rows, one for each part that was read.
node as (
    select
        columns('^(cluster|node_name|day)$'),
        min(start_at) as start_at,
        max(end_at) as end_at,
        max(max(end_at)) over (partition by cluster, day) as listed_until_at,
        max(columns('^(accelerator_count|accelerator_resources|device_count|device_count_min|gpu_model|hardware_make|driver_version)$'))
    from facts.node_day
    where day < $until_at and day + interval 1 day > $since_at
    group by cluster, node_name, day
),

stranger as (
    select distinct device.* similar to '^(cluster|day)$'
    from period.device_day as device
    anti join node
        using (cluster, node_name, day)
),

-- A label has '-' where the driver's model name has a space.
model as (
    select
        replace(gpu_model, ' ', '-') as label,
        max(gpu_model) as gpu_model
    from period.device_day
    group by label
),

of_containers as (
    select columns('^(cluster|node_name|day)$')
    from facts.device_signal
    where source_metric != ''
    group by all
    having bool_and(is_of_containers(source_metric))
),

silent as (
    select
        node.*,
        coalesce(host.device_count, 0) as seen_count,
        case
            when host.device_count > 0
                then coalesce(
                    node.device_count, if(of_containers.day is null, null, coalesce(node.device_count_min, node.accelerator_count))
                ) - host.device_count
            when node.accelerator_count = 0 then coalesce(node.device_count, 1)
            else coalesce(node.device_count, node.device_count_min, if(contains(node.accelerator_resources, '_mig_'), 1, node.accelerator_count))
        end as unseen_count,
        greatest(node.start_at, $since_at::timestamp) as from_at,
        least(
            if(node.end_at + interval 10 minute < node.listed_until_at, node.end_at, node.day::timestamp + interval 1 day),
            $until_at::timestamp
        ) as to_at
    from node
    anti join stranger
        using (cluster, day)
    left join host
        using (cluster, node_name, day)
    left join of_containers
        using (cluster, node_name, day)
    where node.accelerator_count > 0 or node.hardware_make != ''
)

select
    columns('^(cluster|node_name|day)$'),
    case
        when seen_count > 0 then 'device_unseen'
        when accelerator_count > 0 or driver_version != '' then 'no_exporter'
        else 'no_driver'
    end as reason,
    coalesce(model.gpu_model, silent.gpu_model) as gpu_model,
    unseen_count as device_count,
    round(unseen_count * (epoch_ms(to_at) - epoch_ms(from_at)) / 1000, 3) as unknown_seconds,
    case
        when seen_count > 0
            then concat(
                coalesce(device_count || ' devices by node label or resource slices', accelerator_count || ' devices by node capacity'),
                ', ', seen_count, ' with data'
            )
        when accelerator_count > 0
            then concat(
                accelerator_count, ' ', accelerator_resources,
                -- A driver's name has dots; a resource name of kube-state-metrics has none.
                if(contains(accelerator_resources, '.'), ' by resource slices', ' by node capacity'),
                ', ' || if(device_count = accelerator_count, null, device_count) || ' devices by label',
                ', at least ' || device_count_min || ' devices', ', no device series'
            )
        else hardware_make || ' hardware by PCI label, no accelerator in the node''s capacity, no device series'
    end as evidence
from silent
left join model
    on silent.gpu_model = model.label
where unseen_count > 0 and to_at > from_at
