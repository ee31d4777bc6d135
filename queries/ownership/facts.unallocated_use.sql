-- Containers that the exporter reports on devices that Kubernetes did not allocate to them.
--
-- facts.ownership excludes these labels. Pods without Kubernetes data are not included, nor are runs under two minutes, because labels lag. A MIG
-- instance counts as its GPU, because the instance of a claim is not always known.
--
-- revision: 2
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.authoritative_use, day.owner_label_run
-- source: exporter labels against resource claims, Koordinator's annotation and the kubelet
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, end_at, source, allocated_devices
--   device_uuid    UUID of the physical GPU that the label names
--   start_at       UTC, start of the interval with this label and other allocated devices
--   source         source of its allocated devices
with met as (
    select
        run.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod)$',
        authoritative.pod_uid,
        run.container,
        run.start_at as run_start_at,
        greatest(run.start_at, min(authoritative.start_at)) as start_at,
        least(run.end_at, max(authoritative.end_at)) as end_at,
        string_agg(distinct authoritative.source, ', ' order by authoritative.source) as source,
        list_sort(list(distinct authoritative.device_uuid)) as allocated_devices
    from day.owner_label_run as run
    inner join day.authoritative_use as authoritative
        using (cluster, namespace, pod)
    where
        run.pod_uid in ('', authoritative.pod_uid)
        and run.start_at < authoritative.end_at
        and run.end_at > authoritative.start_at
    group by
        run.cluster, run.device_uuid, run.gpu_instance_id, run.namespace, run.pod, authoritative.pod_uid, run.container, run.start_at, run.end_at
)

select * exclude (run_start_at)
from met
where not list_contains(allocated_devices, device_uuid) and end_at - start_at >= interval 2 minutes
