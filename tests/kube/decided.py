"""What the real scheduler of the recording decided, written down by hand from its objects."""

from __future__ import annotations

from pathlib import Path

from kube.lake import query

GPU, MIG_1G, MIG_3G = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
CORE, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"

PODS = {
    # Pod: namespace, node, phase, accelerators in its effective request.
    "koord-half-0": ("data", "gpu-node-3", "Running", {CORE: 50, RATIO: 50}),
    "koord-two-0": ("data", "gpu-node-3", "Running", {CORE: 200, RATIO: 200}),
    "loader-0": ("data", "gpu-node-0", "Running", {GPU: 1}),
    "monster-0": ("data", "", "Pending", {}),
    "monitor-0": ("gpu-operator", "gpu-node-1", "Running", {}),
    "jupyter-0": ("notebooks", "gpu-node-0", "Running", {GPU: 1}),
    "pair-0": ("notebooks", "gpu-node-1", "Running", {}),
    "pair-1": ("notebooks", "gpu-node-1", "Running", {}),
    "finetune-0": ("research", "gpu-node-1", "Running", {}),
    "finetune-1": ("research", "gpu-node-1", "Running", {}),
    "holder-0": ("research", "gpu-node-1", "Running", {}),
    "sweep-0": ("research", "gpu-node-2", "Running", {}),
    "train-llm-0": ("research", "gpu-node-0", "Running", {GPU: 1}),
    "wants-1-0": ("research", "gpu-node-3", "Running", {GPU: 1}),
    "wants-3-0": ("research", "", "Pending", {GPU: 3}),
    "chat-0": ("serving", "gpu-node-2", "Running", {}),
    "embed-0": ("serving", "gpu-node-2", "Running", {}),
    "embed-1": ("serving", "gpu-node-2", "Running", {}),
    "infer-0": ("serving", "gpu-node-0", "Running", {GPU: 1}),
    "mig-slice-0": ("serving", "gpu-node-3", "Running", {MIG_1G: 1}),
    "mig-slice-1": ("serving", "gpu-node-3", "Running", {MIG_3G: 1}),
}
CONTAINER_CLAIMS = {
    # Containers that use a claim.
    ("monster-0", "main"): "monster-0-gpus-lbxfh",
    ("monitor-0", "agent"): "monitor-all",
    ("pair-0", "notebook"): "shared-gpu",
    ("pair-1", "notebook"): "shared-gpu",
    ("finetune-0", "trainer"): "finetune-0-gpus-nnp4w",
    ("finetune-1", "trainer"): "finetune-1-gpus-r9k5c",
    ("holder-0", "main"): "parked",
    ("sweep-0", "worker"): "sweep-0-gpu-xvfw6",
    ("chat-0", "server"): "chat-0-mig-dxmtp",
    ("embed-0", "server"): "embed-0-dev-sxbn4",
    ("embed-1", "server"): "embed-1-dev-msm22",
}
OTHER_CONTAINERS = {
    ("koord-half-0", "worker"),
    ("koord-two-0", "worker"),
    ("loader-0", "loader"),
    ("jupyter-0", "notebook"),
    ("finetune-0", "sidecar"),
    ("train-llm-0", "trainer"),
    ("wants-1-0", "main"),
    ("wants-3-0", "main"),
    ("infer-0", "vllm"),
    ("mig-slice-0", "server"),
    ("mig-slice-1", "warm"),
    ("mig-slice-1", "server"),
}
CLAIMS = {
    # Claim: what it asks for (request, alternative, class, mode, count, for watching).
    "monster-0-gpus-lbxfh": [("gpu", "", "gpu.nvidia.com", "ExactCount", 16, False)],
    "monitor-all": [("all", "", "gpu.nvidia.com", "All", None, True)],
    "shared-gpu": [("gpu", "", "gpu.nvidia.com", "ExactCount", 1, False)],
    "finetune-0-gpus-nnp4w": [("gpu", "", "gpu.nvidia.com", "ExactCount", 2, False)],
    "finetune-1-gpus-r9k5c": [("gpu", "", "gpu.nvidia.com", "ExactCount", 2, False)],
    "parked": [("gpu", "", "gpu.nvidia.com", "ExactCount", 1, False)],
    "sweep-0-gpu-xvfw6": [("gpu", "", "gpu.nvidia.com", "ExactCount", 1, False)],
    "chat-0-mig-dxmtp": [("mig", "", "mig.nvidia.com", "ExactCount", 1, False)],
    "embed-0-dev-sxbn4": [
        ("dev", "small", "mig.nvidia.com", "ExactCount", 1, False),
        ("dev", "full", "gpu.nvidia.com", "ExactCount", 1, False),
    ],
    "embed-1-dev-msm22": [
        ("dev", "small", "mig.nvidia.com", "ExactCount", 1, False),
        ("dev", "full", "gpu.nvidia.com", "ExactCount", 1, False),
    ],
}
CLAIM_DEVICES = {
    # Claim: pool, devices, alternative that was taken, for watching.
    "monitor-all": ("gpu-node-1", [f"gpu-{number}" for number in range(8)], "", True),
    "shared-gpu": ("gpu-node-1", ["gpu-4"], "", False),
    "finetune-0-gpus-nnp4w": ("gpu-node-1", ["gpu-0", "gpu-1"], "", False),
    "finetune-1-gpus-r9k5c": ("gpu-node-1", ["gpu-2", "gpu-3"], "", False),
    "parked": ("gpu-node-1", ["gpu-5"], "", False),
    "sweep-0-gpu-xvfw6": ("gpu-node-2", ["gpu-1"], "", False),
    "chat-0-mig-dxmtp": ("gpu-node-2", ["gpu-0-mig-3g40gb-9-0"], "", False),
    "embed-0-dev-sxbn4": ("gpu-node-2", ["gpu-0-mig-1g10gb-19-4"], "small", False),
    "embed-1-dev-msm22": ("gpu-node-2", ["gpu-0-mig-1g10gb-19-5"], "small", False),
}
CONSUMERS = {
    "monitor-all": ["monitor-0"],
    "shared-gpu": ["pair-0", "pair-1"],
    "finetune-0-gpus-nnp4w": ["finetune-0"],
    "finetune-1-gpus-r9k5c": ["finetune-1"],
    "parked": ["holder-0"],
    "sweep-0-gpu-xvfw6": ["sweep-0"],
    "chat-0-mig-dxmtp": ["chat-0"],
    "embed-0-dev-sxbn4": ["embed-0"],
    "embed-1-dev-msm22": ["embed-1"],
}
QUOTAS = {
    ("kubernetes", "resourcequotas", "research", "gpu"),
    ("kubernetes", "resourcequotas", "serving", "gpu"),
    ("nos", "elasticquotas.nos.nebuly.com", "research", "quota-a"),
    ("nos", "elasticquotas.nos.nebuly.com", "serving", "quota-b"),
    ("nos", "compositeelasticquotas.nos.nebuly.com", "data", "quota-c"),
    ("koordinator", "elasticquotas.scheduling.sigs.k8s.io", "data", "team-data"),
    ("kueue", "clusterqueues.kueue.x-k8s.io", "", "cq-research"),
    ("kueue", "clusterqueues.kueue.x-k8s.io", "", "cq-serving"),
    ("volcano", "queues.scheduling.volcano.sh", "", "vol-a"),
    ("kai", "queues.scheduling.run.ai", "", "kai-team-a"),
    ("kai", "queues.scheduling.run.ai", "", "kai-team-b"),
}
H100 = ("gpu.nvidia.com", "gpu-node-1", 3, "gpu", "", 81559 * 2**20)
DEVICES = {f"gpu-node-1/gpu-{number}": H100 for number in range(8)} | {
    # Device: driver, node, generation, type, profile, memory in bytes.
    "gpu-node-2/gpu-0-mig-3g40gb-9-0": ("gpu.nvidia.com", "gpu-node-2", 1, "mig", "3g.40gb", 40192 * 2**20),
    "gpu-node-2/gpu-0-mig-1g10gb-19-4": ("gpu.nvidia.com", "gpu-node-2", 1, "mig", "1g.10gb", 9728 * 2**20),
    "gpu-node-2/gpu-0-mig-1g10gb-19-5": ("gpu.nvidia.com", "gpu-node-2", 1, "mig", "1g.10gb", 9728 * 2**20),
    "gpu-node-2/gpu-0-mig-1g10gb-19-6": ("gpu.nvidia.com", "gpu-node-2", 1, "mig", "1g.10gb", 9728 * 2**20),
    "gpu-node-2/gpu-1": ("gpu.nvidia.com", "gpu-node-2", 1, "gpu", "", 80 * 2**30),
}


def assert_decided(lake: Path) -> None:
    """The lake holds what was decided, and nothing else."""
    _assert_pods(lake)
    _assert_claims(lake)
    _assert_devices(lake)
    quotas = query(lake, "select system, kind, namespace, name from lake.quota")
    assert len(quotas) == len(QUOTAS)
    assert set(quotas) == QUOTAS


def _assert_pods(lake: Path) -> None:
    pods = query(lake, "select pod, namespace, node_name, phase, effective_requests from lake.pod")
    accelerators = {
        pod: (namespace, node, phase, {name: amount for name, amount in requests.items() if "/" in name})
        for pod, namespace, node, phase, requests in pods
    }
    assert accelerators == PODS
    assert len(pods) == len(PODS)
    containers = query(lake, "select pod, container, [c.claim for c in claims] from lake.pod_container")
    assert {(pod, container): claims for pod, container, claims in containers} == {
        **{name: [claim] for name, claim in CONTAINER_CLAIMS.items()},
        **{key: [] for key in OTHER_CONTAINERS},
    }
    assert len(containers) == len(CONTAINER_CLAIMS) + len(OTHER_CONTAINERS)


def _assert_claims(lake: Path) -> None:
    claims = query(lake, "select claim, requests, is_allocated from lake.claim")
    assert {claim: [tuple(each.values())[:6] for each in requests] for claim, requests, _ in claims} == CLAIMS
    assert {claim for claim, _, is_allocated in claims if is_allocated} == CLAIM_DEVICES.keys()
    statement = """
        select claim, any_value(pool), list(device order by device), any_value(subrequest), bool_and(is_admin_access)
        from lake.claim_device group by claim
    """
    assert {claim: tuple(rest) for claim, *rest in query(lake, statement)} == CLAIM_DEVICES
    consumers = query(lake, "select claim, list(consumer order by consumer) from lake.claim_consumer group by claim")
    assert dict(consumers) == CONSUMERS
    assert query(lake, "select distinct consumer_resource, consumer_group from lake.claim_consumer") == [("pods", "")]


def _assert_devices(lake: Path) -> None:
    statement = """
        select pool || '/' || device, driver, node_name, pool_generation, device_type, profile, capacities['memory']
        from lake.device where is_pool_complete and is_name_unique
    """
    assert {name: tuple(rest) for name, *rest in query(lake, statement)} == DEVICES
    assert query(lake, "select count(*) from lake.device") == [(len(DEVICES),)]
