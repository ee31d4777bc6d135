-- Requests of each pod against the quotas that govern it, in native units and GPUs, with its waiting and allocated time.
--
-- grain:  cluster, system, quota, resource, flavor, pod_uid
-- reads:  day.quota_member, day.quota_native, day.quota_pod, day.quota_unit
-- columns:
--   amount_gpus  amount in GPUs; null for other resources
select
    member.* exclude (is_certain, resources),
    native.* exclude (system, requests),
    regexp_extract(if(native.resource in ('gpu', 'nos.nebuly.com/gpu-memory'), native.requests, native.resource), 'mig-[^=]*') as part,
    pod.created_at,
    if(pod.bound_at < pod.ended_at or pod.ended_at is null, pod.bound_at, null) as bound_at,
    pod.* similar to '^(running_at|ended_at|end_reason|priority)$'
from day.quota_member as member
inner join day.quota_pod as pod
    using (cluster, pod_uid)
inner join day.quota_native as native
    using (system)
semi join day.quota_unit
    using (system, resource)
where
    native.amount_native > 0
    and member.is_certain
    and (member.flavor = '' or list_contains(member.resources, native.resource))
    and (pod.ended_at > pod.created_at or pod.ended_at is null)
    and pod.requests::text = native.requests
