"""Kubernetes objects of the simulated cluster, as list replies of a 1.36 API server at the end of the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpureport.simulate import objects
from gpureport.simulate.objects import Object
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import NodeHistory, node_histories
from gpureport.simulate.workload import NAMESPACES, Pod
from gpureport.values.window import rfc3339

_LISTED_SECONDS = 7200
"""Time for which a finished pod stays in the list."""
QUOTAS: Mapping[str, Mapping[str, int]] = {
    "nos.nebuly.com/v1alpha1": {"vision": 9, "research": 16, "serving": 12},
    "scheduling.x-k8s.io/v1alpha1": {"search": 2, "notebooks": 4, "data": 6},
}
"""Guaranteed GPUs by API of the quota system and by namespace."""


def write_states(plan: SimulationPlan, folder: Path) -> Iterator[tuple[datetime, Path]]:
    """Write the state at the end of each simulated day; yield its time and folder."""
    histories = tuple(node_histories(plan))
    for day in range(1, plan.days + 1):
        until = replace(plan, days=day)
        own = folder / f"{day:03d}"
        own.mkdir(parents=True)
        for name, kind, version, items in _lists(until, histories):
            write_list(own, name, kind, version, items)
        yield until.window.end_at, own


def _lists(plan: SimulationPlan, histories: Sequence[NodeHistory]) -> Iterator[tuple[str, str, str, Iterable[Object]]]:
    """Yield file, kind, API version and objects of each list at the plan's end."""
    at = plan.end_second
    pods = [pod for history in histories for pod in history.pods if pod.life.created <= at < pod.life.end + _LISTED_SECONDS]
    claimed = [pod for pod in pods if pod.node.is_dra and pod.life.start <= at < pod.life.end]
    yield from lists(plan, histories, (_pod(plan, pod) for pod in pods), claimed)
    for number, (version, guaranteed) in enumerate(QUOTAS.items()):
        found = (objects.elastic_quota(plan, name, gpus) for name, gpus in guaranteed.items())
        yield f"elasticquotas-{number}.json", "ElasticQuotaList", version, found


def _pod(plan: SimulationPlan, pod: Pod) -> Object:
    """Return the pod at the plan's end; a pod without a node is pending."""
    manifest = objects.pod(plan, pod)
    if pod.life.start <= plan.end_second:
        return manifest
    spec = {name: value for name, value in manifest["spec"].items() if name != "nodeName"}
    return {**manifest, "spec": spec, "status": {"phase": "Pending", "conditions": []}}


def write_kubernetes(plan: SimulationPlan, out: Path) -> list[Path]:
    """Write nodes, pods, namespaces, resourceclaims and resourceslices as JSON lists, and ``observed_at.txt``.

    Finished pods stay in the list, because their jobs are not deleted; their claims are no longer allocated.
    """
    out.mkdir(parents=True, exist_ok=True)
    observed = out / "observed_at.txt"
    observed.write_text(rfc3339(plan.window.end_at) + "\n")
    histories = tuple(node_histories(plan))
    pods = [pod for history in histories for pod in history.pods]
    made = lists(plan, histories, (objects.pod(plan, pod) for pod in pods), (pod for pod in pods if pod.node.is_dra))
    return [*(write_list(out, *each) for each in made), observed]


def lists(
    plan: SimulationPlan, histories: Sequence[NodeHistory], pods: Iterable[Object], claimed: Iterable[Pod]
) -> Iterator[tuple[str, str, str, Iterable[Object]]]:
    """Yield file, kind, API version and objects of each list."""
    dra = "resource.k8s.io/v1"
    yield "nodes.json", "NodeList", "v1", (objects.node(plan, history.node) for history in histories)
    yield "pods.json", "PodList", "v1", pods
    yield "namespaces.json", "NamespaceList", "v1", (objects.namespace(plan, name) for name in NAMESPACES)
    yield "resourceclaims.json", "ResourceClaimList", dra, (objects.claim(plan, pod) for pod in claimed)
    slices = (objects.slice_of(plan, history.node) for history in histories if history.node.is_dra)
    yield "resourceslices.json", "ResourceSliceList", dra, slices


def write_list(out: Path, name: str, kind: str, version: str, items: Iterable[Object]) -> Path:
    """Write a list with one object per line; objects are streamed, so memory does not grow with their number."""
    path = out / name
    with path.open("w") as file:
        file.write(f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"resourceVersion":"1"}},"items":[')
        for number, item in enumerate(items):
            file.write((",\n" if number else "\n") + json.dumps(item, separators=(",", ":")))
        file.write("\n]}\n")
    return path
