-- Workload of a pod by the kind and name of what made it: runs of a Job and bare pods whose names differ by a number are one.
--
-- Where no source has the owner, the pod's own name does.
--
-- parameters:
--   kind          kind of the pod's maker; '' or null where unknown
--   name          its name; '' or null where unknown
--   pod_workload  workload_by_name of the pod
-- source: facts.pod_workload
create macro workload_of(kind, name, pod_workload) as case
    when coalesce(name, '') = '' then pod_workload
    when kind in ('Job', 'Pod') then regexp_replace(name, '(-\d+)+$', '')
    else name
end
