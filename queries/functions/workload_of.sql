-- Workload of a pod by kind and name of its controller. Runs of a Job are one workload, as are bare pods with names that differ by a number.
--
-- Without an owner in any source, the pod's own name counts.
--
-- parameters:
--   kind          kind of the controller; '' or null where unknown
--   name          name of the controller; '' or null where unknown
--   pod_workload  workload_by_name of the pod
-- source: facts.pod_workload
create macro workload_of(kind, name, pod_workload) as case
    when coalesce(name, '') = '' then pod_workload
    when kind in ('Job', 'Pod') then regexp_replace(name, '(-\d+)+$', '')
    else name
end
