-- Requests of each pod against the quotas that govern it, in native units and GPUs, with its waiting and allocated time.
--
-- grain:  cluster, system, quota, resource, flavor, pod_uid
-- reads:  day.quota_member, day.quota_native, day.quota_pod, day.quota_unit
-- columns:
--   amount_gpus  amount in GPUs; null for other resources
select
    member.* exclude (is_certain, resources, joined_at, left_at),
    native.* exclude (system, requests),
    regexp_extract(if(native.resource in ('gpu', 'nos.nebuly.com/gpu-memory'), native.requests, native.resource), 'mig-[^=]*') as part,
    greatest(pod.created_at, member.joined_at) as created_at,
    if(pod.bound_at < coalesce(least(pod.ended_at, member.left_at), 'infinity'::timestamp), greatest(pod.bound_at, member.joined_at), null) as bound_at,
    least(pod.ended_at, member.left_at) as ended_at,
    if(pod.ended_at > member.left_at, '', pod.end_reason) as end_reason,
    pod.* similar to '^(running_at|priority)$'
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
    and coalesce(least(pod.ended_at, member.left_at) > greatest(pod.created_at, member.joined_at), true)
    and pod.requests::text = native.requests
