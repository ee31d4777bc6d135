"""A small cluster that holds what no recording has: GPUs 0 to 8 of one node, looked at every ten minutes, scraped each minute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpureport.cli import main

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
SNAPSHOTS = range(0, 60, 10)
"""Minutes at which the state is looked at."""
Object = dict[str, Any]


def at(minute: float) -> str:
    """The time of a minute after midnight, as Kubernetes writes it."""
    return (MIDNIGHT + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def claim(
    name: str, gpu: int, since: float, owner: str = "", consumers: list[Object] | None = None, **annotations: str
) -> Object:
    """A claim that has a GPU since a minute."""
    owners = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}] if owner else []
    device = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n", "device": f"gpu-{gpu}"}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": owners,
            "annotations": {f"resource.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()},
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {
            "allocation": {"devices": {"results": [device]}, "allocationTimestamp": at(since)},
            "reservedFor": consumers or [],
        },
    }


def share(name: str, gigabytes: int) -> Object:
    """A claim that has a part of the memory of GPU 8, which others have other parts of."""
    found = claim(name, 8, 0, consumers=by_pod(f"{name}-0", name))
    result = found["status"]["allocation"]["devices"]["results"][0]
    result |= {"shareID": f"share-{name}", "consumedCapacity": {"memory": f"{gigabytes}Gi"}}
    return found


def by_pod(name: str, uid: str) -> list[Object]:
    """The pod as the only consumer."""
    return [{"resource": "pods", "name": name, "uid": uid}]


def pod(name: str, uid: str, since: float, claim_name: str = "", requests: Object | None = None, extended: str = "") -> Object:
    """A pod whose container runs since a minute, by a claim, a request, or a request of which the scheduler made a claim."""
    status: Object = {
        "phase": "Running",
        "startTime": at(since),
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(since)}],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": at(since)}}}],
    }
    resources: Object = {"requests": requests or {}}
    spec: Object = {"nodeName": "n", "containers": [{"name": "main", "resources": resources}]}
    if claim_name:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim_name}]
    if extended:
        mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "gpu"}
        status["extendedResourceClaimStatus"] = {"resourceClaimName": extended, "requestMappings": [mapping]}
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": spec, "status": status}


def state(minute: int) -> dict[str, Any]:
    """The replies of one snapshot, by file."""
    gang = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "g"}]
    claims = [
        claim("gang-claim", 0, 0, consumers=gang if minute < 30 else None),
        claim("parked", 1, 0),
        claim("twice", 5, 0, consumers=by_pod("dra-0", "d")),
        share("small", 20),
        share("large", 60),
    ]
    plug = pod("plug-0", "p", 0, requests={"nvidia.com/gpu": "1"})
    pods = [pod("dra-0", "d", 0, "twice"), plug, pod("small-0", "small", 0, "small"), pod("large-0", "large", 0, "large")]
    if minute < 20:
        claims.append(claim("sts-0-x1", 2, 0, "first", by_pod("sts-0", "first")))
        pods.append(pod("sts-0", "first", 0, "sts-0-x1"))
    else:
        claims.append(claim("sts-0-x2", 3, 18, "second", by_pod("sts-0", "second")))
        pods.append(pod("sts-0", "second", 18.5, "sts-0-x2"))
    if minute >= 10:
        claims.append(claim("ext-0-claim", 4, 4, "e", by_pod("ext-0", "e"), extended_resource_claim="true"))
        pods.append(pod("ext-0", "e", 5, requests={"nvidia.com/gpu": "1"}, extended="ext-0-claim"))
    devices: list[Object] = [
        {"name": f"gpu-{gpu}", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": uuid(gpu)}}} for gpu in (*range(6), 8)
    ]
    devices[-1] |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    slices = [
        {"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "pool": pool, "nodeName": "n", "devices": devices}}
    ]
    slices.append(quiet())
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [{"metadata": {"name": name, "uid": name}, "status": ready} for name in ("n", "quiet")]
    entry = {"PodUID": "p", "ContainerName": "main", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"-1": [uuid(5)]}}
    return {
        "nodes.json": {"kind": "NodeList", "apiVersion": "v1", "items": nodes},
        "pods.json": {"kind": "PodList", "apiVersion": "v1", "items": pods},
        "resourceclaims.json": {"kind": "ResourceClaimList", "apiVersion": "resource.k8s.io/v1", "items": claims},
        "resourceslices.json": {"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": slices},
        "kubelet_internal_checkpoint.json": {"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {}}, "Checksum": 0},
    }


def quiet() -> Object:
    """The slice of a node that no exporter tells of: a GPU, the partitions that could be made of it, and a part of another."""
    whole, cut = ({"string": f"GPU-11111111-0000-0000-0000-00000000000{number}"} for number in range(2))
    part = {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}}
    devices = [
        {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": whole}},
        *({"name": f"gpu-0-mig-{place}", "attributes": {**part, "parentUUID": whole}} for place in range(7)),
        {"name": "gpu-1-mig-0", "attributes": {**part, "uuid": {"string": "MIG-a"}, "parentUUID": cut}},
    ]
    pool = {"name": "quiet", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "pool": pool, "nodeName": "quiet", "devices": devices}
    return {"metadata": {"name": "quiet"}, "spec": spec}


def uuid(gpu: int) -> str:
    """The UUID of a GPU."""
    return f"GPU-00000000-0000-0000-0000-00000000000{gpu}"


def telemetry() -> Iterator[str]:
    """An hour of all GPUs, idle but for 2 to 8; of 6 and 7 the exporter names who holds them."""
    dra = (
        'dra_claim_name="ghost-claim",dra_claim_namespace="ns",dra_driver_name="gpu.nvidia.com",'
        'dra_pool_name="n",dra_device_name="gpu-6"'
    )
    named = {6: f',namespace="ns",pod="ghost-0",container="main",{dra}', 7: ',namespace="ns",pod="kube-0",container="main"'}
    yield "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"
    for gpu in range(9):
        labels = f'Hostname="n",UUID="{uuid(gpu)}",modelName="H100"{named.get(gpu, "")}'
        yield from _samples(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}}", 0 if gpu < 2 else 50)
    yield "# TYPE kube_pod_resourceclaim_info gauge"
    labels = 'namespace="ns",pod="kube-0",uid="k",claim_name="gpu",resourceclaim_name="kube-claim",job="ksm"'
    yield from _samples(f"kube_pod_resourceclaim_info{{{labels}}}", 1)
    yield "# EOF\n"


def _samples(series: str, value: float) -> Iterator[str]:
    for minute in range(60):
        yield f"{series} {value} {int(MIDNIGHT.timestamp()) + 60 * minute}"


def build(folder: Path) -> Path:
    """The lake of the cluster."""
    (folder / "metrics.txt").write_text("\n".join(telemetry()))
    run("import", str(folder / "metrics.txt"), "--cluster", "c", "--lake", str(folder / "lake"))
    for minute in SNAPSHOTS:
        snapshot = folder / f"snapshot-{minute}"
        snapshot.mkdir()
        for name, reply in state(minute).items():
            (snapshot / name).write_text(json.dumps(reply))
        run(
            "import", "--kubernetes", str(snapshot), "--observed-at", at(minute), "--cluster", "c", "--lake", str(folder / "lake")
        )
    run("compute", "--date", "2026-03-01", "--lake", str(folder / "lake"))
    return folder / "lake"


def run(*arguments: str) -> None:
    """A command that must succeed."""
    assert main(list(arguments), environ={}, now=MIDNIGHT + timedelta(days=1)) == 0
