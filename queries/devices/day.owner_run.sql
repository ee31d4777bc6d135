-- Holders named in labels over time: runs of one workload merged, unnamed time left out.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  lake.owner_label
-- source: workload labels of the device's series (dcgm-exporter: pod, namespace, container, pod_uid)
with run as (
    select
        * exclude (start_at, end_at),
        start_at::timestamp as start_at,
        end_at::timestamp as end_at
    from lake.owner_label
    where pod != '' and start_at < end_at
)

select *
-- A run opens a new interval unless it starts before the end of an earlier run of the same workload.
from merged_runs(run, '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$')
