-- End of labels with a pod's uid on a device with later data: the kubelet no longer named the pod.
--
-- grain:  cluster, pod_uid
-- reads:  day.owner_run, lake.device_label
-- source: day.owner_run; labels of the device's series
select
    run.cluster,
    run.pod_uid,
    max(run.end_at) as unnamed_from_at
from day.owner_run as run
left join lake.device_label as device
    on
        run.cluster = device.cluster
        and run.device_uuid = device.device_uuid
        and run.gpu_instance_id = device.gpu_instance_id
        and device.start_at <= run.end_at
        and device.end_at > run.end_at
where run.pod_uid != ''
group by run.cluster, run.pod_uid
having max(run.end_at) = max(run.end_at) filter (where device.end_at is not null)
