-- Name of a pod without what controllers append: a ReplicaSet's hash and five letters, five letters, a number, a number and five letters.
--
-- The letters of hashes have no vowels and none of 0, 1 and 3.
--
-- parameters:
--   pod  name of a pod
-- source: Kubernetes names of generated pods (ReplicaSet, Job, indexed Job, StatefulSet)
create macro workload_by_name(pod) as regexp_replace(
    pod,
    '-(?:[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}|(?:\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)$',
    ''
)
