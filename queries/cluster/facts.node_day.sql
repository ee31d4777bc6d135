-- State of each node on a day: accelerators, pods that request them, hardware, driver.
--
-- kube-state-metrics and Kubernetes snapshots show the same state; one of them is enough. A node without accelerators has a row too; a name without a
-- row is no node. Under time slicing, the device plugin counts each replica (gpu-operator 684): only labels of GPU feature discovery or
-- ResourceSlices show the number of devices. A node with devices allocated by claims advertises no extended resource: its accelerators are the
-- devices of its slices, until a snapshot lacks these or the node is gone.
--
-- revision: 11
-- grain:  cluster, node_name, day
-- reads:  day.node_snapshot, lake.sample, lake.series
-- source: kube-state-metrics: kube_node_*, kube_pod_container_resource_requests; labels of GPU and node feature discovery; snapshots
-- columns: cluster, node_name, day, start_at, end_at, accelerator_count, accelerator_resources, device_count, device_count_min,
--          gpu_model, accelerator_pod_count, hardware_make, driver_version
--   start_at               UTC, start of the listing of its accelerators; of the node where it has none
--   device_count           physical devices by labels (gpu.count except of instances, or capacity ÷ gpu.replicas), else by slices, else percent ÷ 100; null without a source
--   gpu_model              model by label of GPU feature discovery, AMD, Koordinator, GKE or Karpenter; '' without a label
--   driver_version         GPU driver by label; '' without a label
--
-- A pod with a claim counts as a pod with a request: series of claims do not name devices.
with reported as (
    select
        cluster,
        date as day,
        columns('^(series_id|metric|labels)$'),
        coalesce(labels['job'], '') || '/' || coalesce(labels['instance'], '') as target,
        coalesce(labels['exported_node'], if(bool_or('exported_node' in labels) over (partition by cluster, target), '', labels['node']), '') as node_name,
        gpu_units(labels['resource']) > 0 or coalesce(labels['resource'], '') similar to '(nvidia_com_gpu|volcano_sh_vgpu_)cores' as has_size
    from lake.series
    where
        metric in (
            'kube_node_status_capacity', 'kube_node_status_allocatable', 'kube_node_info', 'kube_node_labels',
            'kube_pod_container_resource_requests', 'kube_pod_init_container_resource_requests'
        )
        or (metric = 'kube_pod_info' and (cluster, pod_uid) in (
            select (pod.cluster, pod.pod_uid)
            from lake.series as pod
            where pod.metric = 'kube_pod_resourceclaim_info' and pod.pod_uid != ''
        ))
),

listed as (
    select
        reported.* exclude (series_id, target),
        max(sample.value) as value,
        arg_max(sample.value, sample.seen_at) as value_at_end,
        min(sample.seen_at)::timestamp as start_at,
        max(sample.seen_at + to_milliseconds((1000 * sample.held_seconds)::bigint))::timestamp as end_at
    from reported
    inner join lake.sample
        using (cluster, series_id)
    where reported.day = sample.date and reported.node_name != ''
    group by all
),

allocatable as (
    select
        * exclude (metric, labels, has_size),
        labels['resource'] as resource,
        if(metric = 'kube_node_status_capacity', value, null) as capacity
    from listed
    where has_size and metric in ('kube_node_status_capacity', 'kube_node_status_allocatable') and value > 0
    union all by name
    select
        columns('^(cluster|day|node_name)$'),
        unnest(map_keys(capacity)) as resource,
        unnest(map_values(capacity)) as capacity,
        unnest(map_values(capacity)) as value,
        coalesce(capacity_at_end, capacity)[resource] as value_at_end,
        allocatable_from_at as start_at,
        allocatable_until_at as end_at
    from day.node_snapshot
),

reported_of as (
    select
        *,
        if(
            (is_accelerator(labels['resource']) or metric = 'kube_pod_info') and metric like 'kube_pod%' and value > 0,
            [coalesce(labels['exported_namespace'], labels['namespace']) || '/' || coalesce(labels['exported_pod'], labels['pod'])], []
        ) as pods
    from listed
    union all by name
    select
        * exclude (capacity),
        accelerator_pods as pods
    from day.node_snapshot
),

label as (
    select
        columns('^(cluster|day|node_name)$'),
        max(try_cast(labels['label_nvidia_com_gpu_count'] as bigint)) as gpu_count,
        max(try_cast(labels['label_nvidia_com_gpu_replicas'] as bigint)) as replica_count,
        max(regexp_extract(labels['label_nvidia_com_gpu_product'], '-MIG-(\d+g\..+?)(-SHARED)?$', 1)) as profile,
        -- A shared GPU has -SHARED after its model; a GPU in equal MIG instances has the profile, and its units and count are instances.
        max(coalesce(
            regexp_replace(labels['label_nvidia_com_gpu_product'], '(-MIG-.*)?(-SHARED)?$', ''),
            labels['label_amd_com_gpu_product_name'],
            labels['label_beta_amd_com_gpu_product_name'],
            labels['label_node_koordinator_sh_gpu_model'],
            labels['label_cloud_google_com_gke_accelerator'],
            labels['label_karpenter_k8s_aws_instance_gpu_name']
        )) as gpu_model,
        max(coalesce(
            labels['label_nvidia_com_cuda_driver_version_full'],
            labels['label_nvidia_com_cuda_driver_major'],
            labels['label_amd_com_gpu_driver_version'],
            ''
        )) as driver_version,
        -- Intel's vendor id is left out, because most servers have Intel graphics.
        max(if(labels['label_nvidia_com_gpu_present'] = 'true', 'nvidia', coalesce(list_max([
            if(contains(entry.key, '10de'), 'nvidia', 'amd') for entry in map_entries(labels)
            if entry.value = 'true'
            and regexp_matches(entry.key, '^label_feature_node_kubernetes_io_pci_([a-z0-9]+_)?(10de|1002)_present$')
        ]), ''))) as hardware_make
    from reported_of
    where coalesce(metric, 'kube_node_labels') = 'kube_node_labels'
    group by all
),

named as (
    select
        allocatable.* replace (
            if(resource = 'nvidia_com_gpu' and label.profile != '', 'nvidia_com_mig_' || translate(label.profile, '.+', '__'), resource)
                as resource
        )
    from allocatable
    left join label
        using (cluster, day, node_name)
),

-- Capacity where it is known, else allocatable units; replicas of kube-state-metrics report the same.
resource as (
    select
        columns('^(cluster|day|node_name|resource)$'),
        coalesce(gpu_units(resource), 0.01) = 0.01 as is_percent,
        coalesce(max(capacity), max(value))::bigint as amount,
        -- A resource whose series ended before the others' is gone.
        if(
            max(end_at) + interval 10 minute < max(max(end_at)) over (partition by cluster, day, node_name), 0,
            coalesce(arg_max(value_at_end, end_at) filter (where capacity is not null), arg_max(value_at_end, end_at))
        ) as amount_at_end,
        if(regexp_matches(resource, 'mig|px_nps'), coalesce(gpu_units(resource), 1 / 7), null) as part_ratio,
        resource like '%gpu_shared' as is_shared,
        min(start_at) as start_at,
        max(end_at) as end_at
    from named
    group by cluster, day, node_name, resource
),

capacity as (
    select
        columns('^(cluster|day|node_name)$'),
        max(amount // 100) filter (where is_percent) as percent_device_count,
        -- The layout may change within the day: the most of one resource, or of all at its end, was there at a time.
        coalesce(greatest(max(amount) filter (where not is_percent), sum(amount_at_end) filter (where not is_percent)), percent_device_count)::bigint
            as accelerator_count,
        coalesce(
            string_agg(resource, ', ' order by resource) filter (where not is_percent), string_agg(resource, ', ' order by resource)
        ) as accelerator_resources,
        min(start_at) as start_at,
        max(end_at) as end_at,
        count(part_ratio) > 0 as has_instances,
        bool_or(is_shared) as has_replicas,
        max(if(is_shared, least(1, amount), ceil(amount / coalesce(floor(1 / part_ratio + 1e-9), 1) - 1e-9)))
        filter (where not is_percent or part_ratio is not null) as least_count,
        coalesce(sum(if(is_shared, least(1, amount_at_end), amount_at_end)) filter (where not is_percent and part_ratio is null), 0)
        + ceil(coalesce(greatest(sum(amount_at_end * part_ratio), max(amount_at_end / floor(1 / part_ratio + 1e-9))), 0) - 1e-9) as count_at_end
    from resource
    group by all
),

node as (
    select
        columns('^(cluster|day|node_name)$'),
        min(start_at) as start_at,
        max(end_at) as end_at,
        -- A node that kube-state-metrics does not list is there while it lists others.
        if(count(metric) > 0, max(end_at), max(max(end_at)) over (partition by cluster, day)) as listed_until_at,
        len(list_distinct(flatten(list(pods)))) as accelerator_pod_count
    from reported_of
    group by cluster, day, node_name
)

select
    node.* similar to '^(cluster|node_name|day)$',
    coalesce(capacity.start_at, snapshot.allocatable_from_at, node.start_at) as start_at,
    coalesce(capacity.end_at, if(snapshot.has_slices_at_end, node.listed_until_at, snapshot.allocatable_until_at), node.end_at) as end_at,
    coalesce(capacity.accelerator_count, snapshot.slice_device_count, 0) as accelerator_count,
    coalesce(capacity.accelerator_resources, snapshot.slice_drivers, '') as accelerator_resources,
    case
        when coalesce(label.profile, '') = '' and label.gpu_count between 1 and 1000 then label.gpu_count  -- no node has more GPUs than this
        when not capacity.has_instances and label.replica_count between 1 and capacity.accelerator_count then capacity.accelerator_count // label.replica_count
        else coalesce(snapshot.slice_device_count, capacity.percent_device_count)
    end as device_count,
    case
        when device_count is null and (capacity.has_instances or capacity.has_replicas)
            then if(label.replica_count > 1, 1, greatest(capacity.least_count, capacity.count_at_end))
    end::bigint as device_count_min,
    coalesce(label.gpu_model, '') as gpu_model,
    if((node.cluster, node.day) in (
        select (series.cluster, series.date) from lake.series
        where series.metric like 'kube_pod%'
        union all
        select (shown.cluster, shown.day) from day.node_snapshot as shown
        where shown.accelerator_pods is not null
    ), node.accelerator_pod_count, null) as accelerator_pod_count,
    coalesce(label.hardware_make, '') as hardware_make,
    coalesce(label.driver_version, '') as driver_version
from node
left join capacity
    using (cluster, day, node_name)
left join label
    using (cluster, day, node_name)
left join day.node_snapshot as snapshot
    using (cluster, day, node_name)
