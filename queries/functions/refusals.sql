-- Reasons other than GPUs why a scheduler found no node, sorted: affinity, cpu, memory, other, quota, taint with its key.
--
-- Missing GPUs and unschedulable nodes are excluded, because both are known from the nodes.
--
-- parameters:
--   message       message of the scheduler (lake.pod unschedulable_message)
--   is_selective  whether the pod allows only some nodes of its models; otherwise its node affinity excludes none of them
-- source: Kubernetes scheduler plugins; scheduler-plugins, Koordinator and Volcano for quotas
create macro refusals(message, is_selective) as if(
    regexp_matches(message, '(?i)quota'),
    ['quota'],
    list_sort(list_distinct(list_filter(list_transform(
        string_split(regexp_replace(message, '^.*? available: |[.]? *(no new claims|still not|preemption:).*$', '', 'g'), ', '),
        lambda part: case
            when contains(part, 'Insufficient cpu') then 'cpu'
            when contains(part, 'Insufficient memory') then 'memory'
            when contains(part, ' taint') then trim('taint ' || regexp_extract(part, '\{([^:}]+)', 1))
            when contains(part, 'anti-affinity') or is_selective and regexp_matches(part, 'node (affinity|selector)') then 'affinity'
            when regexp_matches(part, '^$|Insufficient \S+/|node (affinity|selector)|unschedulable|allocate all claims') then ''
            else 'other'
        end
    ), lambda reason: reason != '')))
)
