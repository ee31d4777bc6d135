-- Accelerators that each pod requests, and its progress: extended resources by name, devices of claims by class.
--
-- What the scheduler gave a pod of a class for an extended resource is the class's: it takes no device of the device plugin.
--
-- grain:  cluster, source, is_claim, pod_uid, resource, start_at
-- reads:  day.claim_request, day.kube_request, day.snapshot_request, lake.claim, lake.device_class, lake.pod
-- source: day.snapshot_request, day.claim_request; day.kube_request; Pod status.extendedResourceClaimStatus
-- columns:
--   container_units  what its containers request; null where only others of its parts do
--   is_claim         by resource claims of its own
--   claim_units      as in day.claim_request; null of extended resources
--   given_resource   resource whose units it takes: a class where the scheduler made a claim for it
with given as (
    select distinct
        columns('^(cluster|pod_uid)$'),
        class.extended_resource as resource,
        class.device_class || '.deviceclass.resource.k8s.io/devices' as class_resource
    from lake.pod
    inner join lake.claim
        using (cluster, namespace)
    inner join lake.device_class as class
        using (cluster)
    where
        pod.extended_resource_claim = claim.claim
        and claim.is_extended_resource
        and class.extended_resource != ''
        and list_contains([request.device_class for request in claim.requests], class.device_class)
)

select
    request.*,
    coalesce(given.class_resource, request.resource) as given_resource,
    'snapshot' as source,
    false as is_claim
from day.snapshot_request as request
left join given
    using (cluster, pod_uid, resource)
union all by name
select
    * exclude (device_class),
    resource as given_resource,
    effective_units as container_units,
    false as is_opencosts,
    'snapshot' as source,
    true as is_claim
from day.claim_request
union all by name
select
    *,
    resource as given_resource,
    'kube-state-metrics' as source,
    false as is_claim
from day.kube_request
