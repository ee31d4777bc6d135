-- Pods that request extended resources, over their whole life: created, bound, running, ended, and their queue.
--
-- Snapshots of pods and series of kube-state-metrics are merged by uid. Each time comes from any source that has it, and is at the latest the first
-- snapshot with the fact. KAI's reservation pods for fractions of a GPU are left out. A fraction or memory requested by annotation is gpu-fraction
-- here. kube-state-metrics writes resource names with '_'; they are restored for known vendors. In its series a pod requests the sum of its
-- containers, or its largest init container if more.
--
-- grain:  cluster, pod_uid
-- reads:  day.accelerator_resource, day.kube_series, day.kube_watch, day.pod_life, day.state_snapshot, lake.node, lake.pod, lake.sample, lake.series
-- source: Pod objects; kube-state-metrics pod metrics and kube_pod_labels
-- columns:
--   requests           requested amounts, in base units
--   scheduler          scheduler of the pod; '' where unknown
--   deletion_at        UTC, time at which the pod should be gone, by its deletion and grace period; null where not deleted
with listed as (
    select
        pod.cluster,
        pod_uid,
        max(namespace) as namespace,
        max(pod) as pod,
        least(min(created_at), min(pod.observed_at))::timestamp as created_at,
        least(min(scheduled_at), min(pod.observed_at) filter (where scheduled_at is not null))::timestamp as bound_at,
        min(coalesce(running_at, if(phase = 'Running', started_at, null)))::timestamp as running_at,
        max(finished_at)::timestamp as finished_at,
        min(pod.observed_at) filter (where phase in ('Succeeded', 'Failed'))::timestamp as over_at,
        min(pod.observed_at)::timestamp as first_at,
        max(pod.observed_at)::timestamp as last_at,
        arg_max_null(next_at, pod.observed_at) as gone_at,
        arg_max(status_reason, pod.observed_at) as end_reason,
        max(columns('^(node_name|priority|priority_class|placement|owner_kind|scheduler|scheduling_group|deletion_at)$')),
        arg_max(effective_requests, pod.observed_at) as requests,
        arg_max(quota_scopes, pod.observed_at) as quota_scopes,
        arg_max(labels, pod.observed_at) as labels,
        arg_max(annotations, pod.observed_at) as annotations
    from lake.pod
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        snapshot.kind = 'pods'
        and pod_uid != ''
    group by pod.cluster, pod_uid
),

-- A pod has ended if metrics after its last snapshot do not list it. Metrics with a later snapshot of the pod do not count.
unlisted as (
    select
        listed.cluster,
        listed.pod_uid,
        min(watch.start_at) as gone_at
    from listed
    inner join day.kube_watch as watch
        on listed.cluster = watch.cluster and listed.first_at < watch.end_at
    anti join day.kube_series as series
        on listed.cluster = series.cluster and listed.pod_uid = series.pod_uid and series.signal = 'kube_pod_info'
    group by listed.cluster, listed.pod_uid
    having min(watch.start_at) > max(listed.last_at)
),

-- GPU memory of each node, and the smallest of the cluster, by which KAI counts pending pods.
gpu_memory as (
    select
        cluster,
        coalesce(node_name, '') as node_name,
        min(nullif(try_cast(labels['nvidia.com/gpu.memory'] as double), 0)) as gpu_mib
    from lake.node
    group by grouping sets ((cluster, node_name), (cluster))
),

-- A finished pod may stay in the list for long; it ended when it finished.
snapshot as (
    select
        listed.* exclude (gone_at),
        coalesce(finished_at, over_at, least(listed.gone_at, unlisted.gone_at)) as ended_at,
        coalesce(
            try_cast(annotations['gpu-fraction'] as double), ceil(100 * try_cast(annotations['gpu-memory'] as double) / gpu_memory.gpu_mib) / 100, 0
        ) * coalesce(try_cast(annotations['gpu-fraction-num-devices'] as double), 1) as fraction_gpus
    from listed
    left join unlisted
        using (cluster, pod_uid)
    left join gpu_memory
        using (cluster, node_name)
),

-- A container's request does not change; several series of it are copies from several scrape targets.
container_request as (
    select
        request.* similar to '^(cluster|pod_uid|container)$',
        request.signal = 'kube_pod_init_container_resource_requests' as is_init,
        coalesce(name.resource, case
            when request.resource like 'gpu_intel_com_%' then 'gpu.intel.com/' || request.resource[15:]
            else regexp_replace(request.resource, '^([a-z]+)_(com|sh|ai|io)_', '\1.\2/')
        end) as resource,
        max(sample.value) as amount
    from day.kube_series as request
    inner join lake.sample
        using (cluster, series_id)
    left join day.accelerator_resource as name
        on
            request.cluster = name.cluster
            and request.resource = name.written_as
    where
        request.signal in ('kube_pod_container_resource_requests', 'kube_pod_init_container_resource_requests')
        and request.pod_uid != ''
        and regexp_matches(request.resource, '_(com|sh|ai|io)_')
    group by all
),

pod_request as (
    select
        columns('^(cluster|pod_uid|resource)$'),
        greatest(sum(amount) filter (where not is_init), max(amount) filter (where is_init)) as amount
    from container_request
    group by all
),

requested as (
    select
        cluster,
        pod_uid,
        map_from_entries(list({ 'k': resource, 'v': amount } order by resource)) as requests
    from pod_request
    group by all
),

labelled as (
    select
        cluster,
        pod_uid,
        max(labels['label_kueue_x_k8s_io_cluster_queue_name']) as cluster_queue,
        max(labels['label_kueue_x_k8s_io_queue_name']) as local_queue,
        max(labels['label_volcano_sh_queue_name']) as volcano_queue,
        max(coalesce(labels['label_kai_scheduler_queue'], labels['label_runai_queue'])) as kai_queue,
        max(labels['label_quota_scheduling_koordinator_sh_name']) as koordinator_quota
    from lake.series
    where signal = 'kube_pod_labels' and pod_uid != ''
    group by all
),

-- A uid that the exporter's targets report twice, once relabeled, is one pod.
reported as (
    select
        life.cluster,
        life.pod_uid,
        min(life.namespace) as namespace,
        min(life.pod) as pod,
        min(coalesce(life.created_at, life.listed_from_at)) as created_at,
        min(coalesce(life.bound_at, life.started_at)) as bound_at,
        min(life.started_at) as running_at,
        max(life.ended_at) as ended_at
    from day.pod_life as life
    group by all
),

placed as (
    select
        cluster,
        pod_uid,
        max(columns('^(node_name|priority_class)$'))
    from day.kube_series
    where signal = 'kube_pod_info' and pod_uid != ''
    group by all
),

merged as (
    select
        cluster,
        pod_uid,
        coalesce(snapshot.namespace, reported.namespace) as namespace,
        coalesce(snapshot.pod, reported.pod) as pod,
        least(snapshot.created_at, reported.created_at) as created_at,
        coalesce(snapshot.bound_at, reported.bound_at) as bound_at,
        coalesce(snapshot.running_at, reported.running_at) as running_at,
        least(snapshot.ended_at, reported.ended_at) as ended_at,
        snapshot.deletion_at::timestamp as deletion_at,
        coalesce(snapshot.end_reason, '') as end_reason,
        coalesce(nullif(snapshot.node_name, ''), placed.node_name, '') as node_name,
        snapshot.priority,
        coalesce(snapshot.priority_class, placed.priority_class) as priority_class,
        snapshot.quota_scopes,
        coalesce(snapshot.placement, '') as placement,
        coalesce(snapshot.owner_kind, '') as owner_kind,
        coalesce(snapshot.requests, requested.requests, map { }) as requests,
        coalesce(snapshot.fraction_gpus, 0) as fraction_gpus,
        coalesce(snapshot.scheduler, '') as scheduler,
        coalesce(snapshot.scheduling_group, '') as scheduling_group,
        coalesce(snapshot.labels['kueue.x-k8s.io/cluster-queue-name'], labelled.cluster_queue, '') as cluster_queue,
        coalesce(snapshot.labels['kueue.x-k8s.io/queue-name'], labelled.local_queue, '') as local_queue,
        coalesce(
            snapshot.annotations['scheduling.volcano.sh/queue-name'], snapshot.labels['volcano.sh/queue-name'], labelled.volcano_queue, ''
        ) as volcano_queue,
        coalesce(snapshot.labels['kai.scheduler/queue'], snapshot.labels['runai/queue'], labelled.kai_queue, '') as kai_queue,
        coalesce(snapshot.labels['quota.scheduling.koordinator.sh/name'], labelled.koordinator_quota, '') as koordinator_quota
    from snapshot
    full outer join reported
        using (cluster, pod_uid)
    left join requested
        using (cluster, pod_uid)
    left join labelled
        using (cluster, pod_uid)
    left join placed
        using (cluster, pod_uid)
)

select
    * exclude (bound_at, requests, fraction_gpus),
    if(bound_at is null, null, greatest(created_at, bound_at)) as bound_at,
    if(fraction_gpus > 0, map_concat(requests, map { 'gpu-fraction': fraction_gpus }), requests) as requests
from merged
where
    namespace != 'kai-resource-reservation'
    and created_at is not null
    and (fraction_gpus > 0 or len(list_filter(map_keys(requests), lambda name: contains(name, '/'))) > 0)
