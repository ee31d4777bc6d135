"""The ledger by requests against the ledger by devices, and both against the plan, on clusters of every sharing mode.

Clusters of all modes are there twice: as Kubernetes and an exporter tell of them, and as Kubernetes alone does. Pods come and
go on the full minute, so that nothing but the meaning of their requests decides on their GPU-hours.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from built_once import built_once
from golden_case import gpureport
from report_tables import Report, report_tables

START = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 80
MINUTES, LOOK = 120, 15
MODEL = "NVIDIA H100 80GB HBM3"
LAYOUTS = (("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"), ("1g.10gb",) * 7, ("4g.40gb", "3g.40gb"))
RATIO = "koordinator.sh/gpu-memory-ratio"
Object = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """What pods can have one after the other: a GPU, an instance, a replica, a part; and how much of a GPU it is."""

    gpu: int
    part: float
    instance: str = ""
    profile: str = ""
    virtual: str = ""


@dataclass(frozen=True)
class Pod:
    name: str
    slots: tuple[Slot, ...]
    start: int
    end: int
    requests: dict[str, float]

    @property
    def gpus(self) -> float:
        return sum(slot.part for slot in self.slots)

    @property
    def gpu_hours(self) -> float:
        return self.gpus * (self.end - self.start) / 60


@dataclass
class Node:
    """A node of one sharing mode, and its pods."""

    name: str
    gpu_count: int
    allocatable: dict[str, float]
    labels: dict[str, str]
    exporter: str = "dcgm"
    """dcgm, hami, or anonymous: one that names no pods."""
    by: str = ""
    """koordinator or claims: what names the devices beside the exporter."""
    instances: list[Slot] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)


def uuid(node: Node, gpu: int) -> str:
    return f"GPU-{node.name}-{gpu}"


def runs(draw: random.Random, node: Node, slots: list[tuple[Slot, ...]], requests: Any) -> None:
    """Pods one after the other in each of the slots."""
    for number, group in enumerate(slots):
        at = draw.choice((0, 0, 7, 30))
        while at < MINUTES - 25:
            end = min(MINUTES, at + draw.randint(25, 120))
            name = f"{node.name}-{number}-{len(node.pods)}"
            node.pods.append(Pod(name, group, at, end, requests(group)))
            at = end + draw.choice((0, 15, 40))


def labels(**more: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": MODEL.replace(" ", "-"), "nvidia.com/gpu.memory": "81559", **more}


def whole(draw: random.Random, name: str) -> Node:
    count = draw.randint(1, 4)
    node = Node(name, count, {"nvidia.com/gpu": count}, labels(**{"nvidia.com/gpu.count": str(count)}))
    first = draw.randint(1, count)
    groups = [tuple(Slot(gpu, 1) for gpu in range(first)), *((Slot(gpu, 1),) for gpu in range(first, count))]
    runs(draw, node, groups, lambda group: {"nvidia.com/gpu": len(group)})
    return node


def mig(draw: random.Random, name: str, strategy: str) -> Node:
    count, offered = draw.randint(1, 2), defaultdict[str, float](float)
    layouts = [LAYOUTS[1] if strategy == "single" else draw.choice(LAYOUTS) for _ in range(count)]
    node = Node(name, count, offered, labels(**{"nvidia.com/gpu.count": str(count), "nvidia.com/mig.strategy": strategy}))
    if strategy == "single":
        node.labels |= {
            "nvidia.com/gpu.product": f"{MODEL.replace(' ', '-')}-MIG-1g.10gb",
            "nvidia.com/gpu.count": str(7 * count),
        }
    for gpu, layout in enumerate(layouts):
        for number, profile in enumerate(layout):
            node.instances.append(Slot(gpu, int(profile[0]) / 7, str(number + 1), profile))

    def resource(slot: Slot) -> str:
        return "nvidia.com/gpu" if strategy == "single" else f"nvidia.com/mig-{slot.profile}"

    for slot in node.instances:
        offered[resource(slot)] += 1
    used = draw.sample(node.instances, draw.randint(1, len(node.instances)))
    runs(draw, node, [(slot,) for slot in used], lambda group: {resource(group[0]): 1})
    return node


def sliced(draw: random.Random, name: str, strategy: str) -> Node:
    """Some replicas of some GPUs: what no pod took is free, whoever has the others."""
    count, replicas = draw.randint(1, 3), draw.choice((2, 4))
    told = {"gpu.count": str(count), "gpu.replicas": str(replicas), "gpu.sharing-strategy": strategy}
    told["gpu.product"] = f"{MODEL.replace(' ', '-')}-SHARED"
    node = Node(name, count, {"nvidia.com/gpu": count * replicas}, labels(**{f"nvidia.com/{key}": told[key] for key in told}))
    slots = [Slot(gpu, 1 / replicas, virtual=str(replica)) for gpu in range(count) for replica in range(replicas)]
    runs(draw, node, [(slot,) for slot in slots if draw.random() < 0.6], lambda group: {"nvidia.com/gpu": 1})
    return node


def koordinator(draw: random.Random, name: str) -> Node:
    count = draw.randint(1, 3)
    offered = {"nvidia.com/gpu": count, "koordinator.sh/gpu-core": 100 * count, "koordinator.sh/gpu-memory-ratio": 100 * count}
    offered["koordinator.sh/gpu-memory"] = count * GIB * 2**30
    node = Node(name, count, offered, labels(**{"nvidia.com/gpu.count": str(count)}), "anonymous", "koordinator")

    def requests(group: tuple[Slot, ...]) -> dict[str, float]:
        percent = round(100 * sum(slot.part for slot in group))
        memory = draw.choice(({"gpu-memory-ratio": percent}, {"gpu-memory": percent * GIB * 2**30 // 100}))
        cores = draw.choice(({"gpu-core": percent}, {"gpu-core": 10}, {} if "gpu-memory" in memory else {"gpu-core": 20}))
        return {f"koordinator.sh/{name}": amount for name, amount in {**cores, **memory}.items()}

    runs(draw, node, _parts(draw, count), requests)
    return node


def hami(draw: random.Random, name: str) -> Node:
    count = draw.randint(1, 3)
    node = Node(name, count, {"nvidia.com/gpu": 10 * count}, labels(**{"nvidia.com/gpu.count": str(count)}), "hami")

    def requests(group: tuple[Slot, ...]) -> dict[str, float]:
        percent = round(100 * group[0].part)
        cores, memory = draw.choice(((percent, percent), (percent, 10), (10, percent)))
        if draw.random() < 0.5:
            return {"nvidia.com/gpu": 1, "nvidia.com/gpumem": round(81559 * group[0].part)}
        return {"nvidia.com/gpu": 1, "nvidia.com/gpucores": cores, "nvidia.com/gpumem-percentage": memory}

    runs(draw, node, _parts(draw, count), requests)
    return node


def _parts(draw: random.Random, count: int) -> list[tuple[Slot, ...]]:
    """Shares of some GPUs, all or a part of each."""
    shares = [draw.choice(((1.0,), (0.5, 0.5), (0.5,), (0.25, 0.5), (0.3, 0.3, 0.4))) for _ in range(count)]
    return [(Slot(gpu, share),) for gpu, each in enumerate(shares) for share in each]


def dra(draw: random.Random, name: str) -> Node:
    count = draw.randint(1, 4)
    node = Node(name, count, {}, labels(**{"nvidia.com/gpu.count": str(count)}), draw.choice(("dcgm", "anonymous")), "claims")
    runs(draw, node, [(Slot(gpu, 1),) for gpu in range(draw.randint(1, count))], lambda group: {})
    return node


def dra_shares(draw: random.Random, name: str) -> Node:
    """Claims that take a part of a device's memory."""
    count = draw.randint(1, 3)
    node = Node(name, count, {}, labels(**{"nvidia.com/gpu.count": str(count)}), "anonymous", "claims")
    runs(draw, node, _parts(draw, count), lambda group: {})
    return node


MODES = {
    "whole": whole,
    "mig-mixed": lambda draw, name: mig(draw, name, "mixed"),
    "mig-single": lambda draw, name: mig(draw, name, "single"),
    "time-slicing": lambda draw, name: sliced(draw, name, "time-slicing"),
    "mps": lambda draw, name: sliced(draw, name, "mps"),
    "koordinator": koordinator,
    "hami": hami,
    "dra": dra,
    "dra-shares": dra_shares,
}
CLUSTERS = [*(f"{mode}.0" for mode in MODES), "all.0"]
"""Each mode alone, and all side by side."""
BY_REQUESTS = [cluster for cluster in CLUSTERS if cluster.startswith("all")]


def nodes_of(cluster: str) -> list[Node]:
    mode, _ = cluster.split(".")
    draw = random.Random(cluster)
    chosen = MODES if mode == "all" else [mode]
    nodes = [MODES[each](draw, f"{each}-{number}") for each in chosen for number in range(2)]
    if any(node.by for node in nodes):  # between two looks nobody knows when something ended
        for node in nodes:
            node.pods = [replace(pod, start=pod.start // LOOK * LOOK, end=pod.end // LOOK * LOOK) for pod in node.pods]
    return nodes


class Text:
    """Series by family."""

    def __init__(self) -> None:
        self._lines = defaultdict[str, list[str]](list)

    def add(self, metric: str, value: float, since: int = 0, until: int = MINUTES, **told: str) -> None:
        named = ",".join(f'{name}="{text}"' for name, text in told.items() if text)
        start = int(START.timestamp())
        self._lines[metric] += [f"{metric}{{{named}}} {value} {start + 60 * minute}" for minute in range(since, until)]

    def __str__(self) -> str:
        return (
            "\n".join(line for family, found in self._lines.items() for line in (f"# TYPE {family} gauge", *found)) + "\n# EOF\n"
        )


def kube(text: Text, node: Node) -> None:
    """What kube-state-metrics says."""
    own = {"job": "ksm", "node": node.name}
    for resource, count in node.allocatable.items():
        for metric in ("kube_node_status_allocatable", "kube_node_status_capacity"):
            text.add(metric, count, resource=_written(resource), unit="integer", **own)
    text.add("kube_node_info", 1, **own)
    agent = {"job": "ksm", "namespace": "kube-system", "pod": f"agent-{node.name}", "uid": f"agent-{node.name}"}
    text.add("kube_pod_info", 1, node=node.name, **agent)
    text.add("kube_pod_status_phase", 1, phase="Running", **agent)
    text.add("kube_node_labels", 1, **own, **{f"label_{_written(name)}": value for name, value in node.labels.items()})
    text.add("kube_node_status_condition", 1, condition="Ready", status="true", **own)
    text.add("kube_node_spec_unschedulable", 0, **own)
    for pod in node.pods:
        span, who = (pod.start, pod.end), {"job": "ksm", "namespace": "ns", "pod": pod.name, "uid": f"uid-{pod.name}"}
        text.add("kube_pod_info", 1, *span, node=node.name, **who)
        text.add("kube_pod_created", START.timestamp() + 60 * pod.start, *span, **who)
        text.add("kube_pod_status_scheduled_time", START.timestamp() + 60 * pod.start, *span, **who)
        text.add("kube_pod_status_phase", 1, *span, phase="Running", **who)
        for resource, amount in pod.requests.items():
            text.add(
                "kube_pod_container_resource_requests", amount, *span, container="main", node=node.name,
                resource=_written(resource), **who,
            )  # fmt: skip


def _written(name: str) -> str:
    return name.replace(".", "_").replace("/", "_").replace("-", "_")


def exporter(text: Text, node: Node) -> None:
    """What an exporter says of each device, minute by minute."""
    host = {"Hostname": node.name, "modelName": MODEL}
    metric = "hami_host_gpu_utilization_ratio" if node.exporter == "hami" else "DCGM_FI_DEV_GPU_UTIL"
    for gpu in range(node.gpu_count):
        told = {"UUID": uuid(node, gpu), "gpu": str(gpu), **host}
        parts = [slot for slot in node.instances if slot.gpu == gpu]
        if node.exporter != "dcgm":
            names = (
                told if node.exporter == "anonymous" else {"device_uuid": uuid(node, gpu), "node": node.name, "modelName": MODEL}
            )
            busy = {minute for pod in node.pods for slot in pod.slots if slot.gpu == gpu for minute in range(pod.start, pod.end)}
            for minute in range(MINUTES):
                text.add(metric, 40 if minute in busy else 0, minute, minute + 1, **names)
        for slot in parts or [Slot(gpu, 1)]:
            _named(text, node, metric, slot, told)


def _named(text: Text, node: Node, metric: str, slot: Slot, told: dict[str, str]) -> None:
    """The pods on a GPU or instance, and its time without them."""
    here = [pod for pod in node.pods if any((own.gpu, own.instance) == (slot.gpu, slot.instance) for own in pod.slots)]
    who = {pod.name: {"namespace": "ns", "pod": pod.name, "container": "main"} for pod in here}
    if node.exporter == "hami":
        for pod in here:
            more = {"device_uuid": uuid(node, slot.gpu), "node": node.name, **who[pod.name]}
            text.add("hami_container_device_utilization_ratio", 20, pod.start, pod.end, **more)
    if node.exporter != "dcgm":
        return
    part = {"GPU_I_ID": slot.instance, "GPU_I_PROFILE": slot.profile}
    name = "DCGM_FI_PROF_GR_ENGINE_ACTIVE" if slot.instance else metric
    for pod in here:
        virtual = next(own.virtual for own in pod.slots if own.gpu == slot.gpu)
        text.add(name, 0.4 if slot.instance else 40, pod.start, pod.end, vgpu=virtual, **told, **part, **who[pod.name])
    busy = {minute for pod in here for minute in range(pod.start, pod.end)}
    for minute in range(MINUTES):
        if minute not in busy:
            text.add(name, 0, minute, minute + 1, **told, **part)


def at(minute: float) -> str:
    return (START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def state(nodes: list[Node], minute: int) -> dict[str, Object]:
    """The replies of one look."""
    now = [(node, pod) for node in nodes for pod in node.pods if pod.start <= minute < pod.end]
    of_claims = [node for node in nodes if node.by == "claims"]
    slices = [
        {
            "metadata": {"name": node.name},
            "spec": {
                "driver": "gpu.nvidia.com", "nodeName": node.name,
                "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": f"gpu-{gpu}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": f"{GIB}Gi"}},
                        "attributes": {
                            "type": {"string": "gpu"}, "uuid": {"string": uuid(node, gpu)}, "productName": {"string": MODEL},
                    }} for gpu in range(node.gpu_count)
                ],
            },
        } for node in of_claims
    ]  # fmt: skip
    selector = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
    classes = [{"metadata": {"name": "gpu.nvidia.com"}, "spec": {"selectors": selector}}] if of_claims else []
    dra, devices = "resource.k8s.io/v1", [_device(node) for node in nodes if node.by == "koordinator"]
    found = {
        "nodes.json": ("NodeList", "v1", [_node(node) for node in nodes]),
        "pods.json": ("PodList", "v1", [_pod(node, pod) for node, pod in now]),
        "resourceclaims.json": ("ResourceClaimList", dra, [_claim(node, pod) for node, pod in now if node.by == "claims"]),
        "resourceslices.json": ("ResourceSliceList", dra, slices),
        "deviceclasses.json": ("DeviceClassList", dra, classes),
    }
    if devices:
        found["devices.json"] = ("DeviceList", "scheduling.koordinator.sh/v1alpha1", devices)
    return {name: {"kind": kind, "apiVersion": version, "items": items} for name, (kind, version, items) in found.items()}


def _node(node: Node) -> Object:
    amounts = {name: str(int(count)) for name, count in node.allocatable.items()}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": node.name, "uid": node.name, "labels": node.labels}, "spec": {}, "status": status}


def _device(node: Node) -> Object:
    full = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "80Gi"}
    devices = [
        {"type": "gpu", "id": uuid(node, gpu), "minor": gpu, "health": True, "resources": full} for gpu in range(node.gpu_count)
    ]
    return {"metadata": {"name": node.name}, "spec": {"devices": devices}, "status": {}}


def _pod(node: Node, pod: Pod) -> Object:
    metadata: Object = {"name": pod.name, "namespace": "ns", "uid": f"uid-{pod.name}", "creationTimestamp": at(pod.start)}
    resources: Object = {"requests": {name: str(int(amount)) for name, amount in pod.requests.items()}}
    spec: Object = {"nodeName": node.name, "containers": [{"name": "main", "resources": resources}]}
    status: Object = {
        "phase": "Running", "startTime": at(pod.start),
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(pod.start)}],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": at(pod.start)}}}],
    }  # fmt: skip
    if node.by == "koordinator":
        core = {name: amount for name, amount in resources["requests"].items() if name == "koordinator.sh/gpu-core"}
        given = [
            {"minor": slot.gpu, "id": uuid(node, slot.gpu), "resources": {**core, RATIO: str(round(100 * slot.part))}}
            for slot in pod.slots
        ]
        metadata["annotations"] = {"scheduling.koordinator.sh/device-allocated": json.dumps({"gpu": given})}
    if node.by == "claims":
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"{pod.name}-gpu"}]
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{pod.name}-gpu"}]
    return {"metadata": metadata, "spec": spec, "status": status}


def _claim(node: Node, pod: Pod) -> Object:
    given: list[Object] = []
    for slot in pod.slots:
        share = {"shareID": f"share-{pod.name}", "consumedCapacity": {"memory": f"{round(GIB * slot.part)}Gi"}}
        device = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node.name, "device": f"gpu-{slot.gpu}"}
        given.append(device | (share if slot.part < 1 else {}))
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": len(given)}
    owner = {"kind": "Pod", "name": pod.name, "uid": f"uid-{pod.name}", "controller": True}
    return {
        "metadata": {
            "name": f"{pod.name}-gpu", "namespace": "ns", "uid": f"uid-{pod.name}-gpu", "creationTimestamp": at(pod.start),
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {
            "allocation": {"devices": {"results": given}, "allocationTimestamp": at(pod.start)},
            "reservedFor": [{"resource": "pods", "name": pod.name, "uid": f"uid-{pod.name}"}],
        },
    }  # fmt: skip


def fill(folder: Path, lake: Path, cluster: str) -> None:
    """The cluster as Kubernetes and an exporter tell of it; of all modes, under another name, as Kubernetes alone does too."""
    nodes = nodes_of(cluster)
    for name, has_exporter in ((cluster, True), (f"{cluster}.kube", False))[: 2 if cluster in BY_REQUESTS else 1]:
        text = Text()
        for node in nodes:
            kube(text, node)
            if has_exporter:
                exporter(text, node)
        file = folder / f"{name}.txt"
        file.write_text(str(text))
        gpureport("import", file, "--cluster", name, "--lake", lake)
        if any(node.by for node in nodes):
            for minute in range(0, MINUTES, LOOK):
                look = folder / f"{name}-{minute}"
                look.mkdir()
                for reply, items in state(nodes, minute).items():
                    (look / reply).write_text(json.dumps(items))
                gpureport("import", "--kubernetes", look, "--observed-at", at(minute), "--cluster", name, "--lake", lake)


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    def build(folder: Path) -> None:
        for cluster in CLUSTERS:
            fill(folder, folder / "lake", cluster)
        gpureport("compute", "--date", "2026-01-01", "--lake", folder / "lake")

    lake = built_once("modes", build, request, tmp_path_factory) / "lake"
    with report_tables(lake, "2026-01-01", at(MINUTES)) as found:
        yield found


def by_holder(con: Report, cluster: str) -> dict[tuple[str, str], float]:
    """GPU-hours by node and pod, and under what they are where no pod has them."""
    found = con.execute(
        """select node_name, if(pod != '', pod, bucket), sum(gpu_hours) from report.gpu_hour_ledger
           where cluster = $cluster group by all having sum(gpu_hours) > 1e-6""",
        {"cluster": cluster},
    )
    return {(node, holder): hours for node, holder, hours in found.fetchall()}


def planned(cluster: str) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for node in nodes_of(cluster):
        rest = node.gpu_count * MINUTES / 60
        cut = sum(slot.part for slot in node.instances) * MINUTES / 60 or rest
        for pod in node.pods:
            found[node.name, pod.name] = pod.gpu_hours
            cut, rest = cut - pod.gpu_hours, rest - pod.gpu_hours
        found[node.name, "free"], found[node.name, "fragmented"] = cut, rest - cut
    return {key: hours for key, hours in found.items() if hours > 1e-6}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_ledger_by_devices_is_the_plan(report: Report, cluster: str) -> None:
    assert by_holder(report, cluster) == pytest.approx(planned(cluster), abs=0.02)


@pytest.mark.parametrize("cluster", BY_REQUESTS)
def test_the_ledger_by_requests_is_the_plan(report: Report, cluster: str) -> None:
    assert by_holder(report, f"{cluster}.kube") == pytest.approx(planned(cluster), abs=0.02)
