-- Reason why a request does not fit the free GPUs of a node: affinity, model, share, size, or unknown; '' where it fits.
--
-- parameters:
--   requested_gpus     GPUs that the pod requests; null where unknown
--   wanted_model       models of the nodes that the pod allows (facts.pod_wait)
--   resource           requested resource, as kube-state-metrics writes it
--   gpu_model          model on the node; '' where unknown
--   resources          resources of the node, with such names; '' where unknown
--   free_gpus          free GPUs of the node
--   whole_gpus         whole GPUs among these
--   largest_part_gpus  largest free part of one GPU; null where unknown
-- source: Kubernetes scheduler: one node for a pod; Koordinator: a share is on one device, more than one GPU is whole devices
create macro misfit(requested_gpus, wanted_model, resource, gpu_model, resources, free_gpus, whole_gpus, largest_part_gpus) as case
    when requested_gpus is null then 'unknown'
    when wanted_model = 'none' then 'affinity'
    when
        wanted_model not in ('any', 'unknown')
        and not list_contains(string_split(wanted_model, ', '), coalesce(nullif(gpu_model, ''), 'unknown')) then 'model'
    when
        resources != '' and not regexp_matches(resource, '^koordinator|_deviceclass_')
        and not contains(', ' || resources || ', ', ', ' || resource || ', ')
        then if(starts_with(resources, regexp_extract(resource, '^[a-z]+')), 'share', 'model')
    when requested_gpus > free_gpus + 1e-9 then if(requested_gpus < 1, 'share', 'size')
    when requested_gpus > if(requested_gpus < 1, largest_part_gpus, whole_gpus) + 1e-9 then 'share'
    when contains(resource, '_mig_') and contains(resources, ', ') then 'unknown'
    else ''
end
