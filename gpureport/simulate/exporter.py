"""A node's series: readings with labels of dcgm-exporter 4.5.3-4.8.2, pods with labels of kube-state-metrics 2.18.

One batch per day and node group; memory holds only that batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpureport.simulate.inventory import DRIVER_VERSION, SHARING_REPLICAS, Node, Row, random
from gpureport.simulate.physics import Carried, NodeDay, node_day
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.planted import XID_MESSAGES
from gpureport.simulate.story import Day, node_history
from gpureport.simulate.workload import Pod
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch, concatenate, series_batch
from gpureport.values.window import DAY_MS

EXPORTER_JOB = "nvidia-dcgm-exporter"
DRA_DRIVER = "gpu.nvidia.com"
CLAIM_REQUEST = "gpu"


def device_labels(node: Node, row: Row) -> dict[str, str]:
    """Return the labels of every series of a GPU or MIG instance."""
    gpu = row.gpu
    labels = {"gpu": str(gpu.index), "UUID": gpu.uuid, "pci_bus_id": gpu.pci_bus_id, "device": f"nvidia{gpu.index}"}
    labels["modelName"] = gpu.model.name
    if row.instance:
        labels |= {"GPU_I_PROFILE": row.instance.name, "GPU_I_ID": row.gpu_instance_id}
    return labels | {"Hostname": node.name, "DCGM_FI_DRIVER_VERSION": DRIVER_VERSION}


def workload_labels(pod: Pod, row: Row) -> dict[str, str]:
    """Return the labels of the pod on the row; for a pod served by DRA, this exporter does not have the uid."""
    labels = {"container": pod.kind.container, "namespace": pod.namespace, "pod": pod.name}
    if pod.node.is_dra:
        return labels | {
            "dra_claim_name": claim_name(pod),
            "dra_claim_namespace": pod.namespace,
            "dra_driver_name": DRA_DRIVER,
            "dra_pool_name": pod.node.name,
            "dra_device_name": f"gpu-{row.gpu.index}",
        }
    return labels | {"pod_uid": pod.uid} | ({"vgpu": pod.slot.vgpu} if pod.slot.is_shared else {})


def claim_name(pod: Pod) -> str:
    """Return the name of the claim that the controller made from the pod's template."""
    return f"{pod.name}-gpus-{pod.uid[:5]}"


def scrape_labels(instance: str, job: str = EXPORTER_JOB) -> dict[str, str]:
    """Return the labels that the scrape adds."""
    return {"instance": instance, "job": job}


def instance_label(node: Node, epoch: int) -> str:
    """Return the exporter's address, which changes after each restart."""
    return f"10.{64 + node.index // 250}.{node.index % 250}.{7 + epoch % 240}:9400"


_PURPOSE = 4
_UTIL, _MEMORY = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
_POD_METRICS = (_UTIL, _MEMORY)
_NOT_ON_MIG = (_UTIL, "DCGM_FI_DEV_MEM_COPY_UTIL")
_XID = "DCGM_FI_DEV_XID_ERRORS"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Run:
    """Steps in which a row has one set of labels."""

    row_number: int
    row: Row
    interval: slice
    labels: Labels
    pod: Pod | None
    metrics: tuple[str, ...]


def exporter_series(day: Day, readings: NodeDay) -> SeriesBatch:
    """Return all series of the node's exporter on the day."""
    scrapes = _Scrapes(day)
    for run in _runs(day):
        for interval, restarts in _between_restarts(day, run.interval):
            scrape = scrape_labels(instance_label(day.node, restarts))
            for metric in run.metrics:
                values = _values(run, readings, metric)[interval]
                for part, extra in _parts(metric, values):
                    steps = slice(interval.start + part.start, interval.start + part.stop)
                    scrapes.add({METRIC_LABEL: metric, **run.labels, **extra, **scrape}, steps, values[part])
    return scrapes.batch()


def scrape_phase_ms(day: Day) -> int:
    """Return the offset of the node's scrapes from full steps in ms, below 1 s; the same every day."""
    return int(random(day.plan, _PURPOSE, day.node.index).integers(0, 1000))


def _between_restarts(day: Day, interval: slice) -> Iterator[tuple[slice, int]]:
    """Yield parts of the interval between the exporter's restarts, each with the number of restarts before it."""
    edges = [0, *day.history.planted.restart_steps, day.plan.step_count]
    for restarts, (start, end) in enumerate(pairwise(edges)):
        part = day.cut(start, end)
        shown = slice(max(interval.start, part.start), min(interval.stop, part.stop))
        if shown.start < shown.stop:
            yield shown, restarts


def _runs(day: Day) -> Iterator[_Run]:
    """Yield runs of each row: under each of its pods, without a pod where it is free, and device series of shared GPUs."""
    for number, row in enumerate(day.node.rows):
        metrics = tuple(name for name in day.plan.signals if row.instance is None or name not in _NOT_ON_MIG)
        labels = device_labels(day.node, row)
        held = [(day.interval(pod), pod) for pod in day.history.pods if number in pod.slot.rows]
        busy = _merged([interval for interval, _ in held])
        for interval, pod in held:
            yield _Run(number, row, interval, labels | workload_labels(pod, row), pod, metrics)
        for interval in _uncovered(day.steps, busy):
            yield _Run(number, row, interval, labels, None, metrics)
        if row.gpu.is_shared:
            # While pods share a GPU, the exporter also shows the device's own utilization and memory, without a workload.
            shown = tuple(name for name in metrics if name in _POD_METRICS)
            yield from (_Run(number, row, interval, labels, None, shown) for interval in busy)


def _merged(intervals: Sequence[slice]) -> list[slice]:
    merged: list[slice] = []
    for interval in sorted(intervals, key=lambda interval: interval.start):
        if merged and interval.start <= merged[-1].stop:
            merged[-1] = slice(merged[-1].start, max(merged[-1].stop, interval.stop))
        elif interval.start < interval.stop:
            merged.append(interval)
    return merged


def _uncovered(steps: int, merged: Sequence[slice]) -> list[slice]:
    edges = [0, *(edge for interval in merged for edge in (interval.start, interval.stop)), steps]
    return [slice(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _values(run: _Run, readings: NodeDay, metric: str) -> Floats:
    """Return the day's values of the metric for the run's row, or for its pod where the exporter shows values per pod."""
    if run.pod is not None and run.pod.slot.is_shared and metric in _POD_METRICS:
        return _pod_values(run, run.pod, readings, metric)
    if metric in readings.instance:
        values: Floats = readings.instance[metric][run.row_number]
    else:
        values = readings.board[metric][run.row.gpu.index]
    return values


def _pod_values(run: _Run, pod: Pod, readings: NodeDay, metric: str) -> Floats:
    values = np.zeros(readings.board[_XID].shape[1])
    if run.interval.start < run.interval.stop:
        values[run.interval] = readings.pod_util[pod.uid] if metric == _UTIL else pod.memory_mib(run.row_number)
    return values


def _parts(metric: str, values: Floats) -> Iterator[tuple[slice, Labels]]:
    """Yield the whole day; for XIDs, one part per code, because each code is a separate series."""
    if metric != _XID:
        yield slice(0, values.size), {}
        return
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), values.size]
    for start, end in pairwise(edges):
        code = int(values[start])
        yield slice(start, end), {"err_code": str(code), "err_msg": XID_MESSAGES[code]} if code else {}


class _Scrapes:
    """Collector of a node's series; steps without a scrape are left out."""

    def __init__(self, day: Day) -> None:
        start_ms = day.start_ms + scrape_phase_ms(day)
        self._times = start_ms + np.arange(day.steps, dtype=np.int64) * day.plan.step_seconds * 1000
        self._seen = np.ones(day.steps, bool)
        for gap in day.history.planted.gaps:
            self._seen[day.cut(gap.start_step, gap.end_step)] = False
        self._series: dict[tuple[tuple[str, str], ...], list[tuple[NDArray[np.int64], Floats]]] = {}

    def add(self, labels: Labels, interval: slice, values: Floats) -> None:
        """Add a run to a series; a device that is free again continues its previous series."""
        times, seen = self._times[interval], self._seen[interval]
        if not seen.all():
            times, values = times[seen], values[seen]
        if times.size:
            self._series.setdefault(tuple(labels.items()), []).append((times, values))

    def batch(self) -> SeriesBatch:
        """Return the collected series, each once and in order of time."""
        runs = [sorted(found, key=lambda run: int(run[0][0])) for found in self._series.values()]
        times, values = ([np.concatenate([run[part] for run in found]) for found in runs] for part in (0, 1))
        return series_batch([dict(labels) for labels in self._series], times, values)


_SCRAPE = scrape_labels("10.244.0.9:8080", "kube-state-metrics")
_PHASE_MS = 250
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")

Part = tuple[Labels, NDArray[np.int64], NDArray[np.float64]]


def kube_series(day: Day) -> SeriesBatch:
    """Return a day of the node's allocatable and of its pods, each from its creation on; finished pods stay listed."""
    step_ms = day.plan.kube_state_step_seconds * 1000
    times = day.start_ms + _PHASE_MS + np.arange(DAY_MS // step_ms, dtype=np.int64) * step_ms
    parts = [*_node_parts(day.node, times)]
    for pod in day.history.pods:
        parts += _pod_parts(day.plan, pod, times)
    return series_batch([part[0] for part in parts], [part[1] for part in parts], [part[2] for part in parts])


def allocatable(node: Node) -> dict[str, int]:
    """Return the GPU resources that the device plugin advertises; empty for a node served by DRA."""
    if node.is_dra:
        return {}
    counts: Counter[str] = Counter()
    for row in node.rows:
        name = f"nvidia.com/mig-{row.instance.name}" if row.instance else "nvidia.com/gpu"
        counts[name] += SHARING_REPLICAS if row.gpu.is_shared else 1
    return dict(counts)


def metric_resource(resource: str) -> str:
    """Return a resource name in the notation of kube-state-metrics."""
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
    if not pod.node.is_dra:  # a claim is not a resource request
        resource = metric_resource(pod.slot.resource)
        request = {"container": pod.kind.container, "node": node_name, "resource": resource, "unit": "integer"}
        yield _part("kube_pod_container_resource_requests", own | request, times, len(pod.slot.rows))


def _phase_parts(pod: Pod, own: dict[str, str], times: NDArray[np.int64]) -> Iterator[Part]:
    finished = _PHASES.index("Failed" if pod.life.is_failed else "Succeeded")
    phase = (times >= pod.life.start * 1000).astype(int)
    phase[times >= pod.life.end * 1000] = finished
    for number, name in enumerate(_PHASES):
        yield _part("kube_pod_status_phase", own | {"phase": name}, times, phase == number)


def _part(metric: str, labels: Labels, times: NDArray[np.int64], values: float | NDArray[np.bool_]) -> Part:
    spread = np.broadcast_to(np.asarray(values, np.float64), times.shape)
    return {METRIC_LABEL: metric, **labels, **_SCRAPE}, times, spread


NODES_PER_GROUP = 16
"""128 GPUs: one day of a group with 14 signals has about 5 million samples, 90 MB."""


def node_groups(plan: SimulationPlan) -> list[range]:
    """Return node numbers by group."""
    firsts = range(0, plan.node_count, NODES_PER_GROUP)
    return [range(first, min(plan.node_count, first + NODES_PER_GROUP)) for first in firsts]


def simulate_batches(plan: SimulationPlan) -> Iterator[SeriesBatch]:
    """Yield all samples, one batch per day and node group, in order of days."""
    groups = [GroupSimulation(plan, group) for group in node_groups(plan)]
    for day_number in range(plan.days):
        for group in groups:
            yield group.batch(day_number)


class GroupSimulation:
    """Nodes of a group with their counters. Days must be requested in order."""

    def __init__(self, plan: SimulationPlan, group: range) -> None:
        self._histories = [node_history(plan, index) for index in group]
        self._carried = [Carried() for _ in group]

    def batch(self, day_number: int) -> SeriesBatch:
        """Return all series of the group on a day of the plan (0 = first day)."""
        batches = []
        for history, carried in zip(self._histories, self._carried, strict=True):
            day = Day(history, day_number)
            batches.append(exporter_series(day, node_day(day, carried)))
            if history.plan.kube_state_step_seconds:
                batches.append(kube_series(day))
        return concatenate(batches)
