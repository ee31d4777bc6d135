"""New placement of recorded pods on more or fewer nodes: wait of each pod, and free capacity.

Rules as in the Kubernetes scheduler: a pod runs on one node; the oldest pod that fits is placed first, and a pod that
does not fit blocks no other pod. With the recorded nodes, a pod returns to its recorded node if it fits there, else the
policy decides. GPU replicas and MIG instances are counted in units, as by the scheduler, not in average GPUs.
Times are Unix times in s; amounts are GPUs, cores, GiB. A pod without a recorded end runs until the end of the window,
also if it was never placed in the record.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Policy = Literal["spread", "best-fit", "first-fit"]
_Amounts = tuple[float, float, float]
_EPSILON = 1e-6
_NOTABLE_SECONDS = 60
"""Smaller differences between starts are ignored: a scheduler itself takes seconds."""
_COMPARED = 3_000
"""Number of recorded node choices that are compared with each policy."""
_LEAVING, _END, _STEP, _ARRIVAL = range(4)
_PREFERRED: Mapping[Policy, Callable[[float], float]] = {
    "spread": lambda free: -free,
    "best-fit": float,
    "first-fit": lambda _: 0.0,
}


class Use(NamedTuple):
    """Known use of a pod's GPUs."""

    workload: str = ""
    """In the form namespace/workload."""
    ratio: float | None = None
    """Fraction of its GPUs that were ever active; None where unknown."""
    idle: Sequence[tuple[float, float]] = ()
    """Intervals [start, end) with all GPUs idle, in order of time."""
    is_unknown: bool = False
    """Whether activity is unknown for part of its time; that part counts as use."""


class Request(NamedTuple):
    """Request for GPUs, as the scheduler counts it."""

    gpus: float
    """GPUs of the recorded node; where units are known, they determine the GPUs instead."""
    units: float = 0.0
    """Units of the requested resource; 0 where unknown."""
    unit_gpus: float | None = None
    """GPUs per unit; None to use the node's value."""

    def times(self, factor: float) -> Request:
        """Return the request multiplied by a factor."""
        return self._replace(gpus=self.gpus * factor, units=self.units * factor)


class Pod(NamedTuple):
    """A recorded pod; ``start`` None where it was never placed, ``end`` None where it ran or waited to the window's end."""

    gpus: float
    """Average number of allocated GPUs."""
    created: float
    start: float | None
    end: float | None
    node: str
    kind: tuple[str, str]
    """Requested resource and GPU models."""
    use: Use = Use()
    host: tuple[float, float] = (0.0, 0.0)
    """Requested cores and GiB of the node."""
    requested: Request | None = None
    """None where only the GPUs are known."""
    is_wait_known: bool = True
    """False where ``created`` is its start, because its creation is unknown."""

    @property
    def request(self) -> Request:
        """Return the request; by its GPUs where nothing else is known."""
        return self.requested or Request(self.gpus)


class Node(NamedTuple):
    """A node's capacity over time: times of changes, each with the placeable GPUs from then on."""

    name: str
    gpu_model: str
    steps: tuple[tuple[float, float], ...]
    host: tuple[float, float] = (inf, inf)
    """Cores and GiB available to these pods; inf where unknown."""
    unit_gpus: float = 1.0
    """GPUs per unit, for a resource that counts GPUs or their replicas."""
    units: Mapping[str, float] = MappingProxyType({})
    """Units by resource; a resource that is not listed is unknown and has no limit."""

    @property
    def size(self) -> float:
        """Return the maximum number of GPUs."""
        return max(gpus for _, gpus in self.steps)

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what nodes of one kind have in common: model, GPUs, and resources with GPUs per unit."""
        return self.gpu_model, self.size, self.unit_gpus, frozenset(name for name, units in self.units.items() if units)


@dataclass(frozen=True)
class Scene:
    """Recorded pods and nodes of a cluster in a window."""

    since: float
    until: float
    pods: Sequence[Pod]
    nodes: Sequence[Node]
    places: Mapping[tuple[str, str], Collection[str]]
    """By kind of request: nodes with its resource and one of its models."""
    held: Mapping[int, float] | None = None
    """By pod index, earliest time of placement: until then the pod waits for something other than GPUs, CPU or memory."""
    is_changed: bool = False
    """Whether the nodes differ from the recorded ones."""
    gaps: Collection[tuple[float, float]] = ()
    """Intervals without data: nodes have no capacity in them, and hours and averages exclude them."""

    def gpu_hours(self, pod: Pod, start: float) -> float:
        """Return the pod's GPU-hours from a start to its end; intervals without data are excluded, as in node capacity."""
        lasting = inf if pod.start is None or pod.end is None else pod.end - max(pod.start, self.since)
        end = min(start + lasting, self.until)
        lost = sum(max(0.0, min(end, until) - max(start, since)) for since, until in self.gaps)
        return pod.gpus * (end - start - lost) / 3600

    def with_nodes(self, count: int, like: Node) -> Scene:
        """Return a scene with added nodes, available from the start; a negative count removes the last nodes of the same kind."""
        if count >= 0:
            steps = ((self.since, like.size), *(each for start, end in self.gaps for each in ((start, 0.0), (end, like.size))))
            added = [like._replace(name=f"{like.name}+{number}", steps=steps) for number in range(1, count + 1)]
            names = [node.name for node in added]
            places = {kind: [*there, *names] if like.name in there else there for kind, there in self.places.items()}
            return replace(self, nodes=[*self.nodes, *added], places=places, is_changed=count > 0)
        alike = [node.name for node in self.nodes if node.kind == like.kind]
        gone = {*alike[count:]}
        places = {kind: [name for name in there if name not in gone] for kind, there in self.places.items()}
        return replace(self, nodes=[node for node in self.nodes if node.name not in gone], places=places, is_changed=True)


def calibrated(scene: Scene) -> tuple[Scene, Policy]:
    """Return the scene with earliest placement times for pods that fitted before their recorded start, and the best policy.

    These pods waited for something else. The best policy agrees with the recorded node for most pods.
    """
    replay = _Replay(scene, "spread", is_recorded=True)
    replay.starts()
    return replace(scene, held=replay.held), max(_PREFERRED, key=lambda policy: replay.agreeing[policy])


def replayed(scene: Scene, policy: Policy) -> list[float | None]:
    """Return the start of each pod; None where it was not placed."""
    return _Replay(scene, policy).starts()


class _Replay:
    """One pass over the events of a window."""

    def __init__(self, scene: Scene, policy: Policy, is_recorded: bool = False) -> None:
        self.scene, self._rank, self._is_recorded = scene, _PREFERRED[policy], is_recorded
        self.held = dict(scene.held or {})
        self.agreeing = dict.fromkeys(_PREFERRED, 0)
        self._policy, self._compared = policy, 0
        self._free: dict[str, _Amounts] = {node.name: (0.0, *node.host) for node in scene.nodes}
        self._units = {(node.name, resource): units for node in scene.nodes for resource, units in node.units.items()}
        self._unit_gpus = {node.name: node.unit_gpus for node in scene.nodes}
        self._ordered = sorted(self._free)
        self._number = {name: number for number, name in enumerate(self._ordered)}
        self._free_array = np.array([self._free[name] for name in self._ordered]).reshape(-1, 3).T.copy()
        """Copy of ``_free`` as an array, ordered by node name: it reads many nodes at once."""
        self._free_units = {
            resource: np.array([self._units.get((name, resource), inf) for name in self._ordered])
            for resource in {resource for _, resource in self._units}
        }
        self._sizes = np.array([self._unit_gpus[name] for name in self._ordered])
        self._started: list[float | None] = [None] * len(scene.pods)
        self._on: dict[int, str] = {}
        self._waiting: dict[tuple[tuple[str, str], Request, tuple[float, float]], list[tuple[float, int]]] = {}
        self._events: list[tuple[float, int, int, float]] = []

    def starts(self) -> list[float | None]:
        scene = self.scene
        self._names = [node.name for node in scene.nodes]
        self._of_kind = {kind: {*there} for kind, there in scene.places.items()}
        self._rows = {kind: np.array(sorted(map(self._number.__getitem__, there))) for kind, there in self._of_kind.items()}
        for number, node in enumerate(scene.nodes):
            before = 0.0
            for at, gpus in node.steps:
                self._events.append((max(at, scene.since), _STEP, number, gpus - before))
                before = gpus
        for number, pod in enumerate(scene.pods):
            at = max(pod.created, scene.since, (scene.held or {}).get(number, 0.0))
            leaves = inf if pod.start is not None or pod.end is None else pod.end
            if not pod.request.gpus:
                continue
            if pod.start is not None and pod.start <= scene.since and pod.node in self._free:
                self._place(number, pod.node, scene.since)
            elif at < min(leaves, scene.until):
                self._events += [(at, _ARRIVAL, number, 0.0), (leaves, _LEAVING, number, 0.0)]
        heapify(self._events)
        while self._events and self._events[0][0] < scene.until:
            now, what, number, gpus = heappop(self._events)
            freed = self._apply_event(what, number, gpus)
            # Capacity that becomes free at one instant counts together.
            while self._events and what <= _STEP and self._events[0][:2] <= (now, _STEP):
                _, *event, gpus = heappop(self._events)
                freed += self._apply_event(event[0], event[1], gpus)
            self._fill(dict.fromkeys(freed), now)
        return self._started

    def _apply_event(self, what: int, number: int, gpus: float) -> list[str]:
        """Apply one event; return nodes with more free capacity, or the node for a new pod."""
        if what == _STEP:
            name = self._names[number]
            self._add_free(name, (gpus, 0.0, 0.0))
            return [name] if gpus > 0 else []
        pod = self.scene.pods[number]
        if what == _END:
            self._take(self._on[number], pod, -1)
            return [self._on[number]]
        queue = self._waiting.setdefault((pod.kind, pod.request, pod.host), [])
        if what == _LEAVING:
            if (pod.created, number) in queue:
                queue.remove((pod.created, number))
            return []
        insort(queue, (pod.created, number))
        if queue[0] != (pod.created, number):  # an older pod with the same request does not fit either
            return []
        return self._candidates(pod)

    def _candidates(self, pod: Pod) -> list[str]:
        """Return the node where a new pod can be placed at once; empty where there is none."""
        is_recorded_node = self._fits_recorded_node(pod)
        if is_recorded_node and self._is_recorded and self._compared < _COMPARED:
            self._compared += 1
            for policy in _PREFERRED:
                self.agreeing[policy] += self._best_node(pod, policy) == pod.node
        best = pod.node if is_recorded_node else self._best_node(pod, self._policy)
        return [best] if best else []

    def _best_node(self, pod: Pod, policy: Policy) -> str:
        """Return the node that the policy chooses, the first by name if several are equal; '' where the pod fits on none."""
        rows: NDArray[np.int64] | None = self._rows.get(pod.kind)
        if rows is None or not len(rows):
            return ""
        _, units, unit_gpus = request = pod.request
        gpus = units * (unit_gpus or self._sizes[rows]) if units else request.gpus
        free, cores, memory = self._free_array[:, rows]
        fits = (free >= gpus - _EPSILON) & (cores >= pod.host[0] - _EPSILON) & (memory >= pod.host[1] - _EPSILON)
        if units and pod.kind[0] in self._free_units:
            fits &= self._free_units[pod.kind[0]][rows] >= units - _EPSILON
        best = {"spread": free, "best-fit": -free, "first-fit": fits}[policy]
        chosen = np.argmax(np.where(fits, best, -inf))
        return self._ordered[rows[chosen]] if fits[chosen] else ""

    def _add_free(self, name: str, more: _Amounts) -> None:
        gpus, cores, memory = self._free[name]
        self._free[name] = (gpus + more[0], cores + more[1], memory + more[2])
        self._free_array[:, self._number[name]] = self._free[name]

    def _take(self, name: str, pod: Pod, sign: int = 1) -> None:
        resource, (_, units, _), (cores, memory) = pod.kind[0], pod.request, pod.host
        self._add_free(name, (-sign * self._gpus(pod.request, name), -sign * cores, -sign * memory))
        if units and (name, resource) in self._units:
            self._units[name, resource] -= sign * units
            self._free_units[resource][self._number[name]] = self._units[name, resource]

    def _gpus(self, request: Request, name: str) -> float:
        """Return the number of GPUs that the request takes on the node."""
        return request.units * (request.unit_gpus or self._unit_gpus[name]) if request.units else request.gpus

    def _fits(self, pod: Pod, name: str) -> bool:
        gpus, cores, memory = self._free[name]
        return (
            gpus >= self._gpus(pod.request, name) - _EPSILON
            and cores >= pod.host[0] - _EPSILON
            and memory >= pod.host[1] - _EPSILON
            and self._units.get((name, pod.kind[0]), inf) >= pod.request.units - _EPSILON
        )

    def _fill(self, freed: Collection[str], now: float) -> None:
        """Place waiting pods in the free capacity of these nodes, the oldest first."""
        while heads := [
            (queue[0], there)
            for (kind, *_), queue in self._waiting.items()
            if queue
            and (pod := self.scene.pods[queue[0][1]])
            and (there := [name for name in freed if name in self._of_kind.get(kind, ()) and self._fits(pod, name)])
        ]:
            (created, number), there = min(heads)
            pod = self.scene.pods[number]
            self._waiting[pod.kind, pod.request, pod.host].remove((created, number))
            if not self._is_held_back(number, now):
                best = min(there, key=lambda name: (self._rank(self._free[name][0]), name))
                self._place(number, pod.node if self._fits_recorded_node(pod) else best, now)

    def _fits_recorded_node(self, pod: Pod) -> bool:
        """Return whether the pod fits on its recorded node and the nodes are unchanged."""
        return not self.scene.is_changed and pod.node in self._of_kind.get(pod.kind, ()) and self._fits(pod, pod.node)

    def _is_held_back(self, number: int, now: float) -> bool:
        """Return whether a recorded replay must delay a pod that fits; the pod then returns at its recorded start."""
        start = self.scene.pods[number].start
        if not self._is_recorded or (start is not None and start <= now + _NOTABLE_SECONDS):
            return False
        self.held[number] = inf if start is None else start
        if start is not None:
            heappush(self._events, (start, _ARRIVAL, number, 0.0))
        return True

    def _place(self, number: int, name: str, now: float) -> None:
        pod = self.scene.pods[number]
        self._take(name, pod)
        self._started[number], self._on[number] = now, name
        if pod.start is not None and pod.end is not None:
            heappush(self._events, (now + pod.end - max(pod.start, self.scene.since), _END, number, 0.0))


class Outcome(NamedTuple):
    """Result of a placement."""

    placeable_gpus: float
    """Average over the window."""
    allocated_gpu_hours: float
    free_gpus: float
    """Average over the window."""
    pending_gpu_hours: float | None
    """None where no pod's creation is known."""
    placed_pod_count: int
    waiting_pod_count: int
    """Pods that were never placed."""
    wait_seconds_p50: float | None
    wait_seconds_p95: float | None
    """Of pods known to be created in the window; a pod that was never placed counts its wait so far, a lower bound."""
    moved_pod_count: int
    """Pods whose start differs by more than a minute from the replay of the recorded pods."""


def outcome(scene: Scene, starts: Sequence[float | None], reference_starts: Sequence[float | None]) -> Outcome:
    """Return hours, waits and pods of a placement; moved pods are counted against ``reference_starts``."""
    hours = (scene.until - scene.since - sum(end - start for start, end in scene.gaps)) / 3600
    waits, allocated, pending, without = [], 0.0, 0.0, 0
    there = [(pod, start) for pod, start in zip(scene.pods, starts, strict=True) if pod.gpus]
    for pod, start in there:
        begin = scene.until if start is None else start
        if start is not None:
            allocated += scene.gpu_hours(pod, start)
        elif pod.start is None and pod.end is not None:
            begin = pod.end
        without += start is None
        pending += pod.gpus * max(0.0, begin - max(pod.created, scene.since)) / 3600
        if pod.created >= scene.since and pod.is_wait_known:
            waits.append(max(0.0, begin - pod.created))
    waits.sort()
    moved = sum(
        abs((one or scene.until) - (other or scene.until)) > _NOTABLE_SECONDS
        for pod, one, other in zip(scene.pods, starts, reference_starts, strict=True)
        if pod.gpus
    )
    total = sum(_gpu_seconds(node, scene) for node in scene.nodes) / 3600
    p50, p95 = (_quantile(waits, share) for share in (0.5, 0.95))
    waited = pending if any(pod.is_wait_known for pod in scene.pods) else None
    return Outcome(total / hours, allocated, (total - allocated) / hours, waited, len(there) - without, without, p50, p95, moved)


def _gpu_seconds(node: Node, scene: Scene) -> float:
    """Return the GPU-seconds of the node in the window."""
    ends = [*(at for at, _ in node.steps[1:]), scene.until]
    return sum(gpus * (min(end, scene.until) - max(at, scene.since)) for (at, gpus), end in zip(node.steps, ends, strict=True))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest wait that is at least as long as this share of the waits."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None
