-- Share of a GPU or MIG instance that each container was given, where Kubernetes says so: a row per grant.
--
-- Of a resource claim the part that it takes (day.claim_share), all of a device that it has whole; of Koordinator's grants the larger of
-- computing power and memory. A grant is a claim's or a pod's: containers of one grant have it together. Replicas of a shared device
-- name no part, and are no rows.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, grant_key
-- reads:  day.authoritative_use, day.device_grant, facts.claim_device, facts.claim_use
-- params:
-- source: facts.claim_device, facts.claim_use; day.device_grant, day.authoritative_use
-- columns:
--   grant_key    the claim's uid, share and request, or the pod's uid
select
    use.cluster,
    use.device_uuid,
    use.gpu_instance_id,
    use.namespace,
    use.pod,
    use.pod_uid,
    use.container,
    concat_ws('/', use.claim_uid, use.share_id, use.request) as grant_key,
    min(allocated.share_ratio) as share_ratio,
    min(use.start_at) as start_at,
    max(use.end_at) as end_at
from facts.claim_use as use
inner join facts.claim_device as allocated
    using (cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request)
where
    use.start_at < allocated.end_at
    and use.end_at > allocated.start_at
    and use.claim_uid != '' and not use.is_admin_access and use.device_uuid != '' and use.gpu_instance_id is not null
group by
    use.cluster, use.device_uuid, use.gpu_instance_id, use.namespace, use.pod, use.pod_uid, use.container,
    use.claim_uid, use.share_id, use.request
union all by name
select
    use.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$',
    use.pod_uid as grant_key,
    max(least(100, greatest(part.core_percent, part.memory_ratio_percent)))
    filter (where coalesce(part.core_percent, part.memory_ratio_percent) is not null) / 100 as share_ratio,
    min(use.start_at) as start_at,
    max(use.end_at) as end_at
from day.authoritative_use as use
inner join day.device_grant as part
    using (cluster, pod_uid)
where
    use.device_uuid = part.device_id
    and use.source = 'koordinator' and use.gpu_instance_id = '' and part.device_type = 'gpu'
group by use.cluster, use.device_uuid, use.gpu_instance_id, use.namespace, use.pod, use.pod_uid, use.container
