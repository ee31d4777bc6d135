-- Name of a pod without controllers' suffixes: a ReplicaSet's hash and five letters, five letters, a number, a number and five letters.
--
-- Hashes have no vowels and no 0, 1 or 3.
--
-- parameters:
--   pod  name of a pod
-- source: Kubernetes names of generated pods (ReplicaSet, Job, indexed Job, StatefulSet)
create macro workload_by_name(pod) as regexp_replace(
    pod,
    '-(?:[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}|(?:\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)$',
    ''
)
