-- Holders named in labels over time: runs of one workload merged, unnamed time left out.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  lake.owner_label
-- params:
-- source: workload labels of the device's series (dcgm-exporter: pod, namespace, container, pod_uid)
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, end_at
with run as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        namespace,
        pod,
        pod_uid,
        container,
        start_at::timestamp as start_at,
        end_at::timestamp as end_at
    from lake.owner_label
    where pod != '' and start_at < end_at
),

-- A run opens a new stretch unless it starts within what the same workload's earlier runs reached.
opened as (
    select
        *,
        coalesce(start_at > max(end_at) over (
            partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container
            order by start_at, end_at
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from run
),

numbered as (
    select
        *,
        count(*) filter (where is_new) over (
            partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container
            order by start_at, end_at
            rows between unbounded preceding and current row
        ) as stretch
    from opened
)

select
    cluster,
    device_uuid,
    gpu_instance_id,
    namespace,
    pod,
    pod_uid,
    container,
    min(start_at) as start_at,
    max(end_at) as end_at
from numbered
group by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, stretch
