-- Pods that labels name on devices but that cannot hold one, with the evidence.
--
-- Target labels of a scrape name the exporter's own pod: it has the scraped address and requests no accelerator. A pod without extended resources and
-- without a claim cannot hold a device either. Labels count where both requests and address are unknown. A pod with its node's address is judged by
-- its requests alone.
--
-- revision: 3
-- grain:  cluster, namespace, pod
-- reads:  day.kube_series, day.owner_run, lake.claim_consumer, lake.pod, lake.series
-- source: workload labels and instance of the devices' series; kube_pod_info (pod_ip, host_ip), requests of pods, resource claims of pods
-- columns: cluster, namespace, pod, evidence, device_count
--   evidence       scraped_address or no_request
--   device_count   devices on which labels name it
with named as (
    select
        columns('^(cluster|namespace|pod)$'),
        count(distinct device_uuid || '/' || gpu_instance_id) as device_count
    from day.owner_run
    group by all
),

info as (
    select
        series.cluster,
        kube.namespace,
        kube.pod,
        max(series.labels['pod_ip']) as pod_ip,
        max(series.labels['host_ip']) as host_ip,
        max(series.labels['created_by_kind']) as maker
    from day.kube_series as kube
    inner join lake.series
        using (cluster, series_id)
    where kube.signal = 'kube_pod_info'
    group by all
),

scraped as (
    select distinct
        columns('^(cluster|namespace|pod)$'),
        regexp_replace(labels['instance'], ':\d+$', '') as pod_ip
    from lake.series
    where device_uuid != '' and pod != '' and labels['instance'] != ''
),

request as (
    select
        *,
        not regexp_full_match(resource, 'cpu|memory|storage|ephemeral_storage|hugepages_.*|attachable_volumes_.*|pods') as is_extended
    from day.kube_series
    where signal in ('kube_pod_container_resource_requests', 'kube_pod_init_container_resource_requests') and pod != ''
    union all by name
    select
        *,
        contains(array_to_string(map_keys(effective_requests), ' '), '/') or cardinality(resource_claims) > 0 as is_extended
    from lake.pod
    union all by name
    -- A claim counts as a request for a device.
    select
        *,
        true as is_extended
    from lake.series
    where signal = 'kube_pod_resourceclaim_info'
    union all by name
    select
        *,
        consumer as pod,
        true as is_extended
    from lake.claim_consumer
    where consumer_resource = 'pods'
),

requested as (
    select
        columns('^(cluster|namespace|pod)$'),
        bool_or(is_extended) as has_requested
    from request
    group by all
),

collected as (
    select
        cluster,
        bool_or(is_extended) as is_collected
    from request
    group by all
),

judged as (
    select
        named.*,
        coalesce(requested.has_requested, false) as has_requested,
        -- A pod without any request has no row. For a DaemonSet's pod this counts as known if other pods' requests are collected.
        requested.pod is not null or (info.maker = 'DaemonSet' and collected.is_collected) as is_request_known,
        scraped.pod_ip is not null and coalesce(info.pod_ip != info.host_ip, true) as is_scraped
    from named
    left join info
        using (cluster, namespace, pod)
    left join requested
        using (cluster, namespace, pod)
    left join collected
        using (cluster)
    left join scraped
        using (cluster, namespace, pod, pod_ip)
)

select distinct
    columns('^(cluster|namespace|pod)$'),
    if(is_scraped, 'scraped_address', 'no_request') as evidence,
    device_count
from judged
where not has_requested and (is_scraped or is_request_known)
