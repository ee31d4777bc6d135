"""Simulated pods: sequences of pods on the slots of a node, with planted phases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport.simulate.inventory import SHARED_MEMORY_RATIO, SHARING_REPLICAS, Node, random, stable_uuid
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.planted import Planted

_PURPOSE = 2
_GANG_SIZES = (1, 1, 1, 2, 4)
_HOUR = 3600


@dataclass(frozen=True)
class Kind:
    """Behavior of a kind of workload: activity and memory as fractions of its slot, lifetime in minutes.

    Rhythms: steady, daily (by hour of day), bursts (minutes on, minutes off), or none (allocated but idle).
    """

    stem: str
    namespace: str
    container: str
    weight: float
    load: tuple[float, float]
    tensor: float
    dram: float
    memory: tuple[float, float]
    life_minutes: tuple[int, int]
    rhythm: str


KINDS = (
    Kind("train-llm", "research", "trainer", 0.30, (0.80, 0.97), 0.62, 0.45, (0.55, 0.97), (60, 720), "steady"),
    Kind("infer", "serving", "vllm", 0.25, (0.25, 0.70), 0.35, 0.60, (0.86, 0.94), (360, 2880), "daily"),
    Kind("holder", "research", "main", 0.12, (0.0, 0.0), 0.0, 0.0, (0.10, 0.60), (180, 1200), "none"),
    Kind("jupyter", "notebooks", "notebook", 0.15, (0.10, 0.60), 0.10, 0.25, (0.02, 0.30), (30, 480), "bursts"),
    Kind("sweep", "data", "worker", 0.18, (0.40, 0.90), 0.05, 0.35, (0.10, 0.70), (15, 120), "steady"),
)
NAMESPACES = tuple(sorted({kind.namespace for kind in KINDS} | {"search", "vision"}))


@dataclass(frozen=True)
class Phase:
    """A throttled phase in steps: samples [start_step, end_step) show it; ``ratio`` is the fraction of time lost."""

    reason: str
    start_step: int
    end_step: int
    ratio: float


@dataclass(frozen=True)
class Life:
    """Creation, start and end of a pod, in whole seconds since the epoch."""

    kind: Kind
    created: int
    start: int
    end: int
    is_failed: bool


@dataclass(frozen=True)
class Slot:
    """Place for one pod at a time: rows of the node; on a shared GPU, also the number of the virtual GPU."""

    node: Node
    index: int
    rows: tuple[int, ...]
    vgpu: str
    resource: str

    @property
    def is_shared(self) -> bool:
        """Return whether other pods use the same GPU at the same time."""
        return self.vgpu != ""


@dataclass(frozen=True)
class Pod:
    """A pod with one container; ``load`` and ``memory_ratio`` are fractions of the slot's compute capacity and memory."""

    name: str
    uid: str
    slot: Slot
    life: Life
    load: float
    memory_ratio: float
    phase: Phase | None

    @property
    def kind(self) -> Kind:
        """Return the kind of workload."""
        return self.life.kind

    @property
    def node(self) -> Node:
        """Return the node of the slot."""
        return self.slot.node

    @property
    def namespace(self) -> str:
        """Return the namespace of the kind."""
        return self.kind.namespace

    def end(self, plan: SimulationPlan) -> int | None:
        """Return the end; None where the pod outlives the plan."""
        return self.life.end if self.life.end < plan.end_second else None

    @property
    def is_idle(self) -> bool:
        """Return whether the pod never computes."""
        return self.kind.rhythm == "none"

    def memory_mib(self, row: int) -> float:
        """Return the memory used on one of its rows, in whole MiB."""
        share = SHARED_MEMORY_RATIO if self.slot.is_shared else 1.0
        return float(int(self.node.rows[row].usable_mib * self.memory_ratio * share))


def make_slots(plan: SimulationPlan, node: Node) -> list[Slot]:
    """Return the node's slots: gangs of whole GPUs, single MIG instances, and virtual GPUs of shared GPUs."""
    whole = [number for number, row in enumerate(node.rows) if row.instance is None and not row.gpu.is_shared]
    held = [((*rows,), "", "nvidia.com/gpu") for rows in _gangs(plan, node, whole)]
    for number, row in enumerate(node.rows):
        if row.instance is not None:
            held.append(((number,), "", f"nvidia.com/mig-{row.instance.name}"))
        elif row.gpu.is_shared:
            held += [((number,), str(replica), "nvidia.com/gpu") for replica in range(SHARING_REPLICAS)]
    return [Slot(node, index, rows, vgpu, resource) for index, (rows, vgpu, resource) in enumerate(held)]


def _gangs(plan: SimulationPlan, node: Node, whole: list[int]) -> list[list[int]]:
    draw = random(plan, _PURPOSE, node.index)
    gangs = []
    while whole:
        size = min(int(draw.choice(_GANG_SIZES)), len(whole))
        gangs.append(whole[:size])
        whole = whole[size:]
    return gangs


def make_pods(plan: SimulationPlan, node: Node, planted: Planted) -> list[Pod]:
    """Return the node's pods in order of slot and time, including pods that started before the plan."""
    downs = [(_second_of_step(plan, first), _second_of_step(plan, last)) for first, last in planted.reload_intervals()]
    pods = [pod for slot in make_slots(plan, node) for pod in _slot_pods(plan, slot, downs)]
    return [pod for pod in pods if pod.life.start < plan.end_second and pod.life.end > plan.start_second]


def _slot_pods(plan: SimulationPlan, slot: Slot, downs: list[tuple[int, int]]) -> Iterator[Pod]:
    """Yield pods of a slot in sequence, until the plan's end."""
    draw = random(plan, _PURPOSE, slot.node.index, slot.index + 1)
    start, number = plan.start_second - int(draw.integers(0, 4 * _HOUR)), 0
    while start < plan.end_second:
        life = _draw_life(plan, start, downs, draw)
        yield _draw_pod(plan, slot, number, life, draw)
        pause = int(draw.integers(2, 40)) * 60 if draw.random() < 0.8 else int(draw.integers(1, 6)) * _HOUR
        start, number = life.end + pause, number + 1


def _second_of_step(plan: SimulationPlan, step: int) -> int:
    return plan.start_second + step * plan.step_seconds


def _draw_life(plan: SimulationPlan, start: int, downs: list[tuple[int, int]], draw: np.random.Generator) -> Life:
    """Return a random life; a driver reload delays pods that would start in it and ends running pods."""
    kinds = [kind for kind in KINDS if kind.rhythm != "none" or plan.scenario == "mixed"]
    whole = sum(kind.weight for kind in kinds)
    kind = kinds[int(draw.choice(len(kinds), p=[kind.weight / whole for kind in kinds]))]
    minutes, wait = int(draw.integers(*kind.life_minutes)), int(draw.integers(3, 600))
    length = int(minutes * 60 * plan.pod_life_factor) + int(draw.integers(60))
    start = next((up + wait for down, up in downs if down <= start < up), start)
    reload_at = next((down for down, _ in downs if start < down < start + length), None)
    return Life(kind, start - wait, start, start + length if reload_at is None else reload_at, reload_at is not None)


def _draw_pod(plan: SimulationPlan, slot: Slot, number: int, life: Life, draw: np.random.Generator) -> Pod:
    load, memory = draw.uniform(*life.kind.load), draw.uniform(*life.kind.memory)
    name = f"{life.kind.stem}-{slot.node.index}-{slot.index}-{number}"
    uid = stable_uuid(plan, "pod", name, life.start)
    return Pod(name, uid, slot, life, load, memory, _draw_phase(plan, slot, life, draw))


def _draw_phase(plan: SimulationPlan, slot: Slot, life: Life, draw: np.random.Generator) -> Phase | None:
    """Return a throttled phase inside the pod's life, or None; only some steady pods on whole GPUs have one."""
    chance, where, length, ratio = (float(number) for number in draw.random(4))
    first = first_step(plan, life.start)
    steps = first_step(plan, life.end) - 1 - first
    is_whole = slot.resource == "nvidia.com/gpu" and not slot.is_shared
    is_drawn = plan.scenario == "mixed" and life.kind.rhythm == "steady"
    if not is_whole or not is_drawn or chance > 0.5 or steps < 60:
        return None
    start = first + 2 + int(where * steps * 0.5)
    end = start + 4 + int(length * steps * 0.35)
    return Phase("thermal" if chance < 0.06 else "power", start, end, round(0.1 + 0.5 * ratio, 4))


def first_step(plan: SimulationPlan, second: int) -> int:
    """Return the first scrape at or after a time; 0 for a time before the plan."""
    return max(0, -(-(second - plan.start_second) // plan.step_seconds))
