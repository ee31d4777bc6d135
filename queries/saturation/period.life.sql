-- Lifetime of each container on each of its devices, within the counted hours; no row where no source has its start.
--
-- It is one interval, also over days: a uid has one lifetime.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.ownership
-- parts:  500000 rows of facts.ownership by cluster, namespace, pod
-- params: since_at, until_at
select
    columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
    -- The start is exact on the day that saw it; later days only know the pod's creation.
    greatest(least(max(life_start_at), min(start_at)), date_trunc('hour', $since_at)) as start_at,
    least(greatest(max(life_end_at), max(end_at)), date_trunc('hour', $until_at - interval 1 millisecond) + interval 1 hour) as end_at
from facts.ownership
group by all
having count(life_start_at) > 0
