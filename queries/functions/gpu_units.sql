-- GPUs in one unit of a resource: 0.01 for a percent, slices ÷ 7 for a MIG instance (÷ 4 for an A30), 1/8 for AMD's cpx. Null for other resources.
--
-- Memory and cores of HAMi and Volcano describe GPUs that another resource counts. 1g.24gb counts as 1 of 7, although an RTX PRO 6000 has it too.
--
-- parameters:
--   resource  name as Kubernetes or kube-state-metrics writes it, whose names have '_' for '.', '/' and '-'
-- source: device plugins of the makers; Koordinator, HAMi and Volcano documentation; NVIDIA MIG user guide
create macro gpu_units(resource) as case
    when regexp_matches(resource, '^(koordinator.sh|kubernetes.io).gpu(.core|.memory.ratio)?$') then 0.01
    when regexp_matches(resource, '^nvidia.com.mig.')
        then
            try_cast(regexp_extract(resource, '(\d+)[cg][._]', 1) as double)
            / if(regexp_matches(resource, '1g.6gb|2g.12gb|4g.24gb|2g.48gb|4g.96gb'), 4, 7)
    when regexp_matches(resource, '^amd.com.[sdtqc]px.nps')
        then case substring(resource, 9, 1) when 's' then 1 when 'd' then 1 / 2 when 't' then 1 / 3 when 'q' then 1 / 4 else 1 / 8 end
    when
        regexp_matches(
            resource,
            '^(nvidia.com.gpu(.shared)?|amd.com.gpu|gpu.intel.com.(i915|xe)|habana.ai.gaudi|google.com.tpu|huawei.com.Ascend(310|910)|volcano.sh.vgpu.number)$'
        )
        then 1
end
