-- GPUs in one unit of a resource: 0.01 of a percent, slices ÷ 7 of a MIG instance (÷ 4 of an A30's). Null where units are no part of GPUs.
--
-- Memory and cores of HAMi and Volcano say more of the GPUs that another name counts.
--
-- parameters:
--   resource  name as Kubernetes or kube-state-metrics writes it, whose names have '_' for '.', '/' and '-'
-- source: device plugins of the makers; Koordinator, HAMi and Volcano documentation; NVIDIA MIG user guide
create macro gpu_units(resource) as case
    when regexp_matches(resource, '^(koordinator.sh|kubernetes.io).gpu(.core|.memory.ratio)?$') then 0.01
    when regexp_matches(resource, '^nvidia.com.mig.')
        then try_cast(regexp_extract(resource, '(\d+)g[._]', 1) as double) / if(regexp_matches(resource, '1g.6gb|2g.12gb|4g.24gb'), 4, 7)
    when
        regexp_matches(
            resource,
            '^(nvidia.com.gpu(.shared)?|amd.com.gpu|gpu.intel.com.(i915|xe)|habana.ai.gaudi|google.com.tpu|volcano.sh.vgpu.number)$'
        )
        then 1
end
