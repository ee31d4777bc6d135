"""A lake of four small clusters, as their API servers would list them in two snapshots, 10:00 and 10:15.

``lab`` goes from t1 to t2 of nos' documents: quotas a 40, b 10, c 30 GB, pods of 10 GB. At 10:10 a fifth pod of a is made, which
runs from 10:12, when one of b's four is preempted and made anew. ``order`` has one quota of 20 GB and pods of 20 and 10. ``kai``
has five GPUs, of which one is held by a pod without a queue, and two queues of 2. In ``lab`` a pod of c holds a slice of a GPU
that nos counts as nothing. In ``plugins`` the namespace right holds 3 GPUs, of which 1 is guaranteed; one of left's 2 waits.
"""

import json

from gpureport.cli import main

DAY = "2026-11-20"
OLD = f"{DAY}T08:00:00Z"
NEW = f"{DAY}T10:12:00Z"


def listed(kind, version, items):
    return json.dumps({"kind": f"{kind}List", "apiVersion": version, "metadata": {}, "items": items})


def named(name, namespace="", created=OLD, **labels):
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}-{name}",
        "creationTimestamp": created,
        "labels": {key.replace("__", "/"): value for key, value in labels.items()},
    }


def pod(namespace, name, resource, created=OLD, bound=OLD, ended=None, amount=1, **labels):
    spec = {"containers": [{"name": "main", "resources": {"requests": {resource: str(amount)}}}], "priority": 0}
    status = {"phase": "Failed" if ended else "Running" if bound else "Pending"}
    if bound:
        ran = {"terminated": {"startedAt": bound, "finishedAt": ended}} if ended else {"running": {"startedAt": bound}}
        spec["nodeName"] = "n1"
        status |= {
            "startTime": bound,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}],
            "containerStatuses": [{"name": "main", "state": ran}],
        }
    return {"metadata": named(name, namespace, created, **labels), "spec": spec, "status": status}


def node(**allocatable):
    amounts = {key.replace("__", "/"): str(amount) for key, amount in allocatable.items()}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": named("n1"), "spec": {}, "status": {"allocatable": amounts, "capacity": amounts, "conditions": ready}}


def elastic(namespace, gb):
    return {"metadata": named("q", namespace), "spec": {"min": {"nos.nebuly.com/gpu-memory": gb}}}


def guaranteed(namespace, gpus):
    """scheduler-plugins' ElasticQuota."""
    return {"metadata": named("q", namespace), "spec": {"min": {GPU: str(gpus)}}}


TEN, TWENTY, GPU = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb", "nvidia.com/gpu"
A = [pod("c", "slice", "nvidia.com/gpu-10gb"), *(pod("a", f"a{n}", TEN) for n in range(4))]
LAB_AT_T1 = [*A, *(pod("b", f"b{n}", TEN) for n in range(4))]
LAB_AT_T2 = [
    *A,
    pod("a", "a4", TEN, f"{DAY}T10:10:00Z", NEW),
    *(pod("b", f"b{n}", TEN) for n in range(3)),
    pod("b", "b3", TEN, ended=NEW),
    pod("b", "b4", TEN, NEW, None),
]
ORDER = [pod("team", "old", TWENTY), pod("team", "young", TEN, f"{DAY}T09:00:00Z")]
KAI = [
    *(pod("x", f"x{n}", GPU, bound=OLD if n < 2 else None, **{"kai.scheduler__queue": "x"}) for n in range(6)),
    *(pod("y", f"y{n}", GPU, **{"kai.scheduler__queue": "y"}) for n in range(2)),
    pod("other", "alone", GPU),
]
PLUGINS = [*(pod("right", f"r{n}", GPU) for n in range(3)), pod("left", "l0", GPU, bound=None)]
QUEUES = [
    {"metadata": named(name), "spec": {"resources": {"gpu": {"quota": 2, "overQuotaWeight": 1, "limit": -1}}}} for name in "xy"
]
NOS = ("ElasticQuota", "nos.nebuly.com/v1alpha1")
CLUSTERS = {
    "lab": (
        (LAB_AT_T1, LAB_AT_T2),
        [node(**{TEN.replace("/", "__"): 8})],
        (*NOS, [elastic("a", 40), elastic("b", 10), elastic("c", 30)]),
    ),
    "order": ((ORDER, ORDER), [node(**{TEN.replace("/", "__"): 1, TWENTY.replace("/", "__"): 1})], (*NOS, [elastic("team", 20)])),
    "plugins": (
        (PLUGINS, PLUGINS),
        [node(**{"nvidia.com__gpu": 3})],
        ("ElasticQuota", "scheduling.x-k8s.io/v1alpha1", [guaranteed("left", 2), guaranteed("right", 1)]),
    ),
    "kai": ((KAI, KAI), [node(**{"nvidia.com__gpu": 5})], ("Queue", "scheduling.run.ai/v2", QUEUES)),
}


def make_lake(folder, now):
    """The lake's folder."""
    for cluster, (snapshots, nodes, quotas) in CLUSTERS.items():
        for at, pods in zip(("10:00", "10:15"), snapshots, strict=True):
            state = folder / f"{cluster}-{at.replace(':', '')}"
            state.mkdir()
            (state / "pods.json").write_text(listed("Pod", "v1", pods))
            (state / "nodes.json").write_text(listed("Node", "v1", nodes))
            (state / "quotas.json").write_text(listed(*quotas))
            arguments = ["--observed-at", f"{DAY}T{at}:00Z", "--cluster", cluster, "--lake", str(folder / "lake")]
            assert main(["import", "--kubernetes", str(state), *arguments], environ={}, now=now) == 0
    return folder / "lake"
