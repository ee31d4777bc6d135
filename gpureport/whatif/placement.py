"""Recorded pods placed anew, on more or fewer nodes: who would have waited how long, and what would have been free.

As the Kubernetes scheduler does it: a pod is on one node; whoever waits longest and fits goes first, and one that does not fit
keeps no other from its place. With the recorded nodes a pod goes to the node on which it ran where it fits there, else by the
policy. Replicas of GPUs and MIG instances are counted in units, as the scheduler does, not in the GPUs that they were on average.
Times are s since 1970, amounts GPUs, cores, GiB. A pod that runs at the end of the window runs until there; so
would one that never ran.
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
"""A start that differs by less is the same: it takes a scheduler seconds."""
_COMPARED = 3_000
"""So many choices of nodes show which policy they agree with."""
_END, _STEP, _ARRIVAL, _LEAVING = range(4)
_PREFERRED: Mapping[Policy, Callable[[float], float]] = {
    "spread": lambda free: -free,
    "best-fit": float,
    "first-fit": lambda _: 0.0,
}


class Use(NamedTuple):
    """Known use of a pod's GPUs."""

    workload: str = ""
    """As namespace/workload."""
    ratio: float | None = None
    """The part of its GPUs that ever did anything; None where that is unknown."""
    idle: Sequence[tuple[float, float]] = ()
    """Times on end in which none did, in order."""
    is_unknown: bool = False
    """Whether its activity is unknown for some of its time, which counts as use."""


class Request(NamedTuple):
    """Request for GPUs, as the scheduler counts it."""

    gpus: float
    """GPUs of the node on which it ran; where units are known they decide how many GPUs it takes."""
    units: float = 0.0
    """Units of its resource; 0 where unknown."""
    unit_gpus: float | None = None
    """GPUs in a unit; None where the node has it."""

    def times(self, factor: float) -> Request:
        """That part of it."""
        return self._replace(gpus=self.gpus * factor, units=self.units * factor)


class Pod(NamedTuple):
    """A pod as it was recorded; ``start`` None where it never had a place, ``end`` None where it ran, or waited, to the end."""

    gpus: float
    """Allocated on average."""
    created: float
    start: float | None
    end: float | None
    node: str
    kind: tuple[str, str]
    """Resource and models that it requests."""
    use: Use = Use()
    host: tuple[float, float] = (0.0, 0.0)
    """Cores and GiB that it requests of the node."""
    requested: Request | None = None
    """None for its GPUs."""

    @property
    def request(self) -> Request:
        """By its GPUs where nothing else is known."""
        return self.requested or Request(self.gpus)


class Node(NamedTuple):
    """A node's capacity over time: times of changes with the GPUs that pods can have from then on."""

    name: str
    gpu_model: str
    steps: tuple[tuple[float, float], ...]
    host: tuple[float, float] = (inf, inf)
    """Cores and GiB that these pods can have, without bound where unknown."""
    unit_gpus: float = 1.0
    """GPUs in a unit of a resource that counts GPUs or their replicas."""
    units: Mapping[str, float] = MappingProxyType({})
    """Units by resource, without bound where unknown."""

    @property
    def size(self) -> float:
        """GPUs at most."""
        return max(gpus for _, gpus in self.steps)


@dataclass(frozen=True)
class Scene:
    """Recorded pods and nodes of a cluster in a window."""

    since: float
    until: float
    pods: Sequence[Pod]
    nodes: Sequence[Node]
    places: Mapping[tuple[str, str], Collection[str]]
    """By kind of request the nodes with its resource and one of its models."""
    held: Mapping[int, float] | None = None
    """By number of the pod a time before which it has no place: it waited for something other than GPUs, CPU or memory."""
    is_changed: bool = False
    """Its nodes are others than those on which the pods ran."""
    gaps: Collection[tuple[float, float]] = ()
    """Times without any data: no node has capacity then, and hours and averages are of the others."""

    def gpu_hours(self, pod: Pod, start: float) -> float:
        """What it has from a start on until its end; nothing in times without data, in which nodes have nothing either."""
        lasting = inf if pod.start is None or pod.end is None else pod.end - max(pod.start, self.since)
        end = min(start + lasting, self.until)
        lost = sum(max(0.0, min(end, until) - max(start, since)) for since, until in self.gaps)
        return pod.gpus * (end - start - lost) / 3600

    def grown(self, count: int, like: Node) -> Scene:
        """With so many nodes more, whole from the beginning, or less, the last ones of the same model and size."""
        if count >= 0:
            steps = ((self.since, like.size), *(each for start, end in self.gaps for each in ((start, 0.0), (end, like.size))))
            added = [like._replace(name=f"{like.name}+{number}", steps=steps) for number in range(1, count + 1)]
            names = [node.name for node in added]
            places = {kind: [*there, *names] if like.name in there else there for kind, there in self.places.items()}
            return replace(self, nodes=[*self.nodes, *added], places=places, is_changed=count > 0)
        alike = [node.name for node in self.nodes if (node.gpu_model, node.size) == (like.gpu_model, like.size)]
        gone = {*alike[count:]}
        places = {kind: [name for name in there if name not in gone] for kind, there in self.places.items()}
        return replace(self, nodes=[node for node in self.nodes if node.name not in gone], places=places, is_changed=True)


def calibrated(scene: Scene) -> tuple[Scene, Policy]:
    """The scene in which pods that fit and were not placed are held until they were: they waited for something else.

    And the policy by which most pods would be on the node on which they are.
    """
    replay = _Replay(scene, "spread", is_recorded=True)
    replay.starts()
    return replace(scene, held=replay.held), max(_PREFERRED, key=lambda policy: replay.agreeing[policy])


def replayed(scene: Scene, policy: Policy) -> list[float | None]:
    """Start of each pod; None where it has no place."""
    return _Replay(scene, policy).starts()


class _Replay:
    """One run through the events of a window."""

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
        """The same as ``_free``, by name: many nodes are read at once."""
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
            if not pod.request.gpus:
                continue
            if pod.start is not None and pod.start <= scene.since and pod.node in self._free:
                self._place(number, pod.node, scene.since)
            elif at < scene.until:
                self._events.append((at, _ARRIVAL, number, 0.0))
                if pod.start is None and pod.end is not None:
                    self._events.append((pod.end, _LEAVING, number, 0.0))
        heapify(self._events)
        while self._events and self._events[0][0] < scene.until:
            now, what, number, gpus = heappop(self._events)
            freed = self._happen(what, number, gpus)
            # Capacity that is freed at one instant counts together.
            while self._events and what <= _STEP and self._events[0][:2] <= (now, _STEP):
                _, *event, gpus = heappop(self._events)
                freed += self._happen(event[0], event[1], gpus)
            self._fill(dict.fromkeys(freed), now)
        return self._started

    def _happen(self, what: int, number: int, gpus: float) -> list[str]:
        """One event; the nodes with more free capacity by it, or the one on which a new pod has its place."""
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
        if queue[0] != (pod.created, number):  # those before it found no place for as much
            return []
        return self._candidates(pod)

    def _candidates(self, pod: Pod) -> list[str]:
        """The node on which a new pod has its place at once, if there is one."""
        is_home = self._is_home(pod)
        if is_home and self._is_recorded and self._compared < _COMPARED:
            self._compared += 1
            for policy in _PREFERRED:
                self.agreeing[policy] += self._best_of_all(pod, policy) == pod.node
        best = pod.node if is_home else self._best_of_all(pod, self._policy)
        return [best] if best else []

    def _best_of_all(self, pod: Pod, policy: Policy) -> str:
        """The node on which the policy puts it; of those alike the first by name; '' where it fits on none."""
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
        """GPUs of the node that it takes."""
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
        """Place those who wait in the free capacity of these nodes, the oldest first."""
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
                self._place(number, pod.node if self._is_home(pod) else best, now)

    def _is_home(self, pod: Pod) -> bool:
        """Whether it fits on the node on which it ran, and the nodes are those that there were."""
        return not self.scene.is_changed and pod.node in self._of_kind.get(pod.kind, ()) and self._fits(pod, pod.node)

    def _is_held_back(self, number: int, now: float) -> bool:
        """Whether, as it was recorded, it has no place yet though it fits; it then comes again when it had one."""
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
    """On average."""
    allocated_gpu_hours: float
    free_gpus: float
    """On average."""
    pending_gpu_hours: float
    placed_pod_count: int
    waiting_pod_count: int
    """Pods that had no place at the end."""
    wait_seconds_p50: float | None
    wait_seconds_p95: float | None
    """Of the pods that came in the window; of one without a place as long as it was there, so at least that."""
    moved_pod_count: int
    """Pods that began a minute earlier or later than in the replay of what was recorded."""


def outcome(scene: Scene, starts: Sequence[float | None], usual: Sequence[float | None]) -> Outcome:
    """Hours, waits and pods of a placement, beside the one that is usual."""
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
        if pod.created >= scene.since:
            waits.append(max(0.0, begin - pod.created))
    waits.sort()
    moved = sum(
        abs((one or scene.until) - (other or scene.until)) > _NOTABLE_SECONDS
        for pod, one, other in zip(scene.pods, starts, usual, strict=True)
        if pod.gpus
    )
    total = sum(_gpu_seconds(node, scene) for node in scene.nodes) / 3600
    p50, p95 = (_quantile(waits, share) for share in (0.5, 0.95))
    return Outcome(total / hours, allocated, (total - allocated) / hours, pending, len(there) - without, without, p50, p95, moved)


def _gpu_seconds(node: Node, scene: Scene) -> float:
    """GPU-s of the window."""
    ends = [*(at for at, _ in node.steps[1:]), scene.until]
    return sum(gpus * (min(end, scene.until) - max(at, scene.since)) for (at, gpus), end in zip(node.steps, ends, strict=True))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest wait that so many do not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None
