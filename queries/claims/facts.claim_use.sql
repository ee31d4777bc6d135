-- Containers that run with a device of a resource claim, over time.
--
-- A container names claims, or one request of a claim. A container without a claim uses no device, even if its pod reserves one. Names of claims
-- recur, so only overlapping intervals are joined. For claims known from labels alone, labels name the containers.
--
-- grain:  cluster, namespace, pod, pod_uid, container, claim, claim_uid, driver, pool, device, share_id, request, start_at
-- reads:  day.claim_label, day.container_run, facts.claim_device
-- columns: those of facts.claim_device without subrequest, is_extended_resource, node_name, device_type, profile, gpu_model, matched_by,
--          share_ratio, share_source, start_source, end_source; pod, pod_uid, container, is_ambiguous
with requested as (
    select distinct
        * exclude (claims),
        unnest(claims) as requested
    from day.container_run
)

select distinct
    requested.* similar to '^(cluster|namespace|pod|pod_uid|container)$',
    allocated.* similar to '^(claim|claim_uid|driver|pool|device|share_id|request|device_uuid|gpu_instance_id)$',
    allocated.matched_by = 'order of instances' as is_ambiguous,
    allocated.is_admin_access,
    greatest(requested.start_at, allocated.start_at) as start_at,
    least(requested.end_at, allocated.end_at) as end_at,
    if(requested.end_at <= allocated.end_at, requested.end_uncertainty_seconds, allocated.end_uncertainty_seconds) as end_uncertainty_seconds
from requested
inner join facts.claim_device as allocated
    using (cluster, namespace)
where
    requested.requested.claim = allocated.claim
    and requested.requested.request in ('', allocated.request)
    and requested.start_at < allocated.end_at
    and requested.end_at > allocated.start_at
    and allocated.matched_by != 'labels'
union all by name
select
    label.* exclude (driver, pool, device, node_name, profile, gpu_model),
    allocated.* similar to '^(claim_uid|driver|pool|device|share_id|request)$',
    false as is_ambiguous,
    false as is_admin_access
from day.claim_label as label
inner join facts.claim_device as allocated
    using (cluster, namespace, claim, device_uuid, gpu_instance_id)
where
    label.start_at >= allocated.start_at
    and label.end_at <= allocated.end_at
    and allocated.matched_by = 'labels'
