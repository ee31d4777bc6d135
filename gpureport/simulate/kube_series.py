"""The kube-state-metrics series of a node and its pods, as version 2.18 names and labels them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpureport.simulate.exporter import scrape_labels
from gpureport.simulate.inventory import SHARING_REPLICAS, Node
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import Day
from gpureport.simulate.workload import Pod
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch
from gpureport.values.window import DAY_MS

_SCRAPE = scrape_labels("10.244.0.9:8080", "kube-state-metrics")
_PHASE_MS = 250
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")

Part = tuple[Labels, NDArray[np.int64], NDArray[np.float64]]


def kube_series(day: Day) -> SeriesBatch:
    """A day of the node's allocatable and of each of its pods, from its creation on; finished pods stay listed."""
    step_ms = day.plan.kube_state_step_seconds * 1000
    times = day.start_ms + _PHASE_MS + np.arange(DAY_MS // step_ms, dtype=np.int64) * step_ms
    parts = [*_node_parts(day.node, times)]
    for pod in day.story.pods:
        parts += _pod_parts(day.plan, pod, times)
    offsets = np.concatenate([[0], np.cumsum([part[1].size for part in parts])]).astype(np.int64)
    return SeriesBatch(
        [labels for labels, _, _ in parts],
        offsets,
        np.concatenate([np.empty(0, np.int64), *(times for _, times, _ in parts)]),
        np.concatenate([np.empty(0), *(values for _, _, values in parts)]),
    )


def allocatable(node: Node) -> dict[str, int]:
    """The GPU resources that the device plugin advertises; a node served by DRA advertises none."""
    if node.is_dra:
        return {}
    counts: Counter[str] = Counter()
    for row in node.rows:
        name = f"nvidia.com/mig-{row.instance.name}" if row.instance else "nvidia.com/gpu"
        counts[name] += SHARING_REPLICAS if row.gpu.is_shared else 1
    return dict(counts)


def metric_resource(resource: str) -> str:
    """A resource's name as kube-state-metrics writes it."""
    return resource.replace(".", "_").replace("/", "_").replace("-", "_")


def _node_parts(node: Node, times: NDArray[np.int64]) -> Iterator[Part]:
    for resource, count in allocatable(node).items():
        labels = {"node": node.name, "resource": metric_resource(resource), "unit": "integer"}
        yield _part("kube_node_status_allocatable", labels, times, count)
    yield _part("kube_node_spec_unschedulable", {"node": node.name}, times, 0)
    yield _part("kube_node_status_condition", {"node": node.name, "condition": "Ready", "status": "true"}, times, 1)


def _pod_parts(plan: SimulationPlan, pod: Pod, times: NDArray[np.int64]) -> Iterator[Part]:
    listed = times[times >= pod.life.created * 1000]
    if kept := plan.finished_listed_hours:
        listed = listed[listed < (pod.life.end + kept * 3600) * 1000]
    if not listed.size:
        return
    own = {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}
    yield _part("kube_pod_created", own, listed, pod.life.created)
    is_placed = listed >= pod.life.start * 1000
    for node_name, chosen in (("", listed[~is_placed]), (pod.node.name, listed[is_placed])):
        if chosen.size:
            yield from _placed_parts(pod, own, node_name, chosen)
    yield from _phase_parts(pod, own, listed)
    finished = listed[listed >= pod.life.end * 1000]
    if finished.size:
        yield _part("kube_pod_completion_time", own, finished, pod.life.end)


def _placed_parts(pod: Pod, own: dict[str, str], node_name: str, times: NDArray[np.int64]) -> Iterator[Part]:
    made_by = {"node": node_name, "created_by_kind": "Job", "created_by_name": pod.name}
    yield _part("kube_pod_info", own | made_by, times, 1)
    if not pod.node.is_dra:  # a claim is no resource request
        resource = metric_resource(pod.slot.resource)
        asked = {"container": pod.kind.container, "node": node_name, "resource": resource, "unit": "integer"}
        yield _part("kube_pod_container_resource_requests", own | asked, times, len(pod.slot.rows))


def _phase_parts(pod: Pod, own: dict[str, str], times: NDArray[np.int64]) -> Iterator[Part]:
    finished = _PHASES.index("Failed" if pod.life.is_failed else "Succeeded")
    phase = (times >= pod.life.start * 1000).astype(int)
    phase[times >= pod.life.end * 1000] = finished
    for number, name in enumerate(_PHASES):
        yield _part("kube_pod_status_phase", own | {"phase": name}, times, phase == number)


def _part(metric: str, labels: Labels, times: NDArray[np.int64], values: float | NDArray[np.bool_]) -> Part:
    spread = np.broadcast_to(np.asarray(values, np.float64), times.shape)
    return {METRIC_LABEL: metric, **labels, **_SCRAPE}, times, spread
