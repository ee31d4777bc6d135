"""Recorded demand through a system's rules once more, with the quotas as they were or otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpureport.schedulers.allocation import allocate
from gpureport.schedulers.change import NO_CHANGE, Change, changed
from gpureport.schedulers.model import Holding
from gpureport.schedulers.tree import below, leaves

UNKNOWABLE = (
    "Demand stays as recorded: work that would have ended earlier still asks, and nobody asks for more because there is more.",
    "Pods are as divisible as water: whether they fit on nodes, wait for each other or lose work when evicted is not replayed.",
    "Each resource is replayed by itself: pods that another one (cpu, memory) would have kept out are not seen.",
    "A scheduler does what its rules allow: its configuration is not known, reclaiming is taken to be on and to take no time.",
)
"""What no replay can know, as sentences."""
_UNGOVERNED = ("nos", "scheduler-plugins", "koordinator", "kubernetes")
"""Here pods run without a quota too (Koordinator: under its default quota); elsewhere a pod without a queue does not."""


@dataclass(frozen=True)
class Step:
    """A stretch of time in which nothing changes, for one resource of one system."""

    start_ms: int
    end_ms: int
    holdings: Sequence[Holding]
    capacity: float
    """What there is to share out, in the resource's unit."""

    @property
    def delivered(self) -> dict[str, float]:
        """What each quota holds."""
        return {each.quota.name: each.delivered for each in self.holdings}


def replay(system: str, resource: str, steps: Iterable[Step], change: Change = NO_CHANGE) -> Iterator[Step]:
    """The steps with quotas as changed and what they would hold.

    It starts, and goes on after a gap, from what was held then.
    """
    before: dict[str, float] = {}
    end_ms = None
    for step in steps:
        now = _replayed(system, resource, step, change, before if step.start_ms == end_ms else step.delivered)
        yield now
        before, end_ms = now.delivered, step.end_ms


def _replayed(system: str, resource: str, step: Step, change: Change, before: Mapping[str, float]) -> Step:
    holdings = [replace(each, quota=changed(each.quota, resource, change)) for each in step.holdings]
    outside = _ungoverned(system, step.holdings, change, step.capacity)
    governed = [each for each in holdings if each.quota.name not in change.removed]
    held = outside | allocate(system, resource, governed, step.capacity - sum(outside.values()), before)
    return replace(step, holdings=[replace(each, delivered=_held(each, holdings, held)) for each in holdings])


def _ungoverned(system: str, holdings: Sequence[Holding], change: Change, capacity: float) -> dict[str, float]:
    """What pods of removed quotas hold: what they ask for, as nobody may take it from them, or nothing."""
    left, held = capacity, {}
    for each in leaves(holdings):
        if each.quota.name in change.removed:
            held[each.quota.name] = min(each.demanded, left) if system in _UNGOVERNED else 0.0
            left -= held[each.quota.name]
    return held


def _held(holding: Holding, holdings: Sequence[Holding], held: Mapping[str, float]) -> float:
    """What it holds; a parent what the quotas under it do."""
    name = holding.quota.name
    return held[name] if name in held else sum(held.get(each.quota.name, 0.0) for each in below(name, holdings))
