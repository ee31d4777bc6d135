-- Requests of each pod against the quotas that govern it, in native units and GPUs, with the time it waited and was allocated.
--
-- grain:  cluster, system, quota, resource, flavor, pod_uid
-- reads:  day.quota_member, day.quota_native, day.quota_pod, day.quota_terms, day.quota_unit
-- params:
-- source: day.quota_member, day.quota_pod; day.quota_native
-- columns:
--   created_at   UTC, from when it asks
--   amount_gpus  the same in GPUs; null where the resource is none
select
    member.* exclude (resources),
    native.* exclude (system, requests),
    pod.node_name,
    pod.created_at,
    if(pod.bound_at < pod.ended_at or pod.ended_at is null, pod.bound_at, null) as bound_at,
    pod.running_at,
    pod.ended_at,
    pod.end_reason,
    pod.priority
from day.quota_member as member
inner join day.quota_pod as pod
    using (cluster, pod_uid)
inner join day.quota_native as native
    on
        member.system = native.system
        and pod.requests::text = native.requests
semi join day.quota_unit as unit
    on
        native.system = unit.system
        and native.resource = unit.resource
semi join day.quota_terms as span
    on
        member.cluster = span.cluster
        and member.system = span.system
        and member.quota = span.quota
        and member.flavor = span.flavor
        and native.resource = span.resource
where
    native.amount_native > 0
    and (member.flavor = '' or list_contains(member.resources, native.resource))
    and (pod.ended_at > pod.created_at or pod.ended_at is null)
