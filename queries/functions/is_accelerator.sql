-- Whether a resource counts accelerators, by the domain of a vendor or of a scheduler that shares accelerators.
--
-- Excluded: network cards under nvidia.com, and names of Intel's plugin that give a monitor access to all GPUs of a node.
--
-- parameters:
--   resource  name as Kubernetes or kube-state-metrics writes it, whose names have '_' for '.', '/' and '-'
-- source: device plugins of the makers; Koordinator and Volcano documentation
create macro is_accelerator(resource) as regexp_matches(
    resource,
    '^((nvidia.com|amd.com|gpu.intel.com|habana.ai|google.com|aws.amazon.com|k8s.amazonaws.com|huawei.com|cambricon.com'
    || '|hygon.com|dcu.com|metax.tech.com|mthreads.com|enflame.com|iluvatar.ai|iluvatar.com|kunlunxin.com|baidu.com|birentech.com'
    || '|tencent.com|aliyun.com|qualcomm.com|furiosa.ai|rebellions.ai|tenstorrent.com)[/_].|(volcano.sh|koordinator.sh|kubernetes.io)[/_]v?gpu)'
) and not regexp_matches(
    lower(resource),
    '^(nvidia.com.(hostdev|ib[0-9_-]|(.*[_-])?vfs?$|.*(nics?($|[^a-z])|sriov|rdma|roce|mlnx|infiniband))|gpu.intel.com.*_monitoring$)'
)
