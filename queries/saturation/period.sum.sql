-- Hourly sums of devices, of containers on each device, and of containers over several devices, added over the window.
--
-- Several nodes, models or other labels are listed. A container on one device has only the row of that device.
--
-- grain:  subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.container_day, facts.device_day, period.life
-- parts:  150000 rows of facts.container_day by cluster, namespace, pod
-- source: facts.device_hour, facts.container_hour
-- columns:
--   device_seconds    s in which devices had data, added over devices
--   sharing_mode      least exclusive mode of the hours; '' for a device
--   observed_seconds  s, equal to device_seconds
with daily as not materialized (
    select
        'device' as subject,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as container,
        '' as sharing_mode,
        '' as sharing_evidence,
        coalesce(columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$'), '') as "\0",
        * exclude (node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make)
    from facts.device_day
    union all by name
    select
        'container_device' as subject,
        coalesce(columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$'), '') as "\0",
        * exclude (node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make)
    from facts.container_day
),

-- An exporter with XID errors of any device of the node would have reported this device's errors too. A series starts with the first XID
-- (dcgm-exporter 700): there, no series means no error. Series that begin without an error show that the exporter did not report them before.
xid_node as (
    select
        columns('^(cluster|node_name)$'),
        if(min(day) = min(day) filter (where xid_event_count > 0), '-infinity'::date, min(day)) as first_day
    from daily
    where xid_event_count is not null
    group by all
),

-- Materialized, because to read a hundred columns three times takes longer than all else here.
marked as materialized (
    select
        daily.*,
        coalesce(daily.day >= xid_node.first_day, false) as is_xid_node
    from daily
    left join xid_node
        using (cluster, node_name)
),

-- Most pods live on one day and hold one device: only the others are added up, because a hundred sums take much memory.
several_days as (
    select columns('^(subject|cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$')
    from daily
    group by all
    having count(*) > 1
),

several_devices as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        'container_device' as subject
    from (
        select distinct columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$')
        from facts.container_day
    ) as each_device
    group by all
    having count(*) > 1
),

summed as (
    select
        columns('^(subject|cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        sum(observed_seconds) as device_seconds,
        sum(columns('^[^o].*_(seconds|joules|bytes)$|^pcie_replay(_gap)?_count$')) as "\0",
        sum(columns('sample_count$'))::bigint as "\0",
        max(columns('_max$')) as "\0",
        coalesce(sum(xid_event_count), if(bool_or(is_xid_node), 0, null))::bigint as xid_event_count,
        if(bool_or(is_xid_node), coalesce(flatten(list(xid_codes) filter (where len(xid_codes) > 0)), []), null) as xid_codes,
        max(sharing_mode) as sharing_mode,
        arg_max(sharing_evidence, sharing_mode) as sharing_evidence,
        coalesce(array_to_string(list_sort(list_distinct(list(nullif(columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$'), '')))), ', '), '') as "\0"
    from (
        from marked
        semi join several_days
            using (subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
        union all by name
        select * replace ('container' as subject, '' as device_uuid, '' as gpu_instance_id)
        from marked
        semi join several_devices
            using (subject, cluster, namespace, pod, pod_uid, container)
    ) as each_row
    group by all
    union all by name
    select
        columns('^(subject|cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        observed_seconds as device_seconds,
        columns('^[^o].*_(seconds|joules|bytes)$|^pcie_replay(_gap)?_count$'),
        columns('sample_count$'),
        columns('_max$'),
        coalesce(xid_event_count, if(is_xid_node, 0, null)) as xid_event_count,
        if(is_xid_node, coalesce(xid_codes, []), null) as xid_codes,
        sharing_mode,
        sharing_evidence,
        columns('^(node_name|gpu_index|gpu_device|gpu_model|gpu_instance_profile|pci_bus_id|driver_version|make)$')
    from marked
    anti join several_days
        using (subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
)

select
    summed.* replace (list_sort(list_distinct(summed.xid_codes)) as xid_codes),
    summed.device_seconds as observed_seconds,
    if(life.start_at is null, null, greatest(0, epoch_ms(life.end_at) - epoch_ms(life.start_at)) / 1000) as lifetime_seconds
from summed
left join period.life as life
    using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
