"""Replay of recorded demand under a system's rules, with recorded or changed quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpureport.schedulers.allocation import allocate
from gpureport.schedulers.change import NO_CHANGE, Change, changed
from gpureport.schedulers.kai import KaiPolicy
from gpureport.schedulers.koordinator import KoordinatorPolicy
from gpureport.schedulers.kueue import KueuePolicy
from gpureport.schedulers.model import DEFAULT_RULES, Holding, Past, Quota, Rules, below, leaves
from gpureport.schedulers.pods import Policy, Replay, Request
from gpureport.schedulers.scheduler_plugins import ElasticPolicy, NosPolicy
from gpureport.schedulers.volcano import VolcanoPolicy

SIMPLIFICATIONS = (
    "Demand stays as recorded: work that would have ended earlier still requests GPUs, and more capacity adds no requests.",
    "Nodes are one pool: placement on nodes, and work lost by eviction, are not replayed.",
    "Each resource is replayed separately: limits of other resources (cpu, memory) do not count.",
    "A scheduler acts at once: cycles, grace periods and backoff take no time.",
)
"""Limits of every replay, in sentences for the report."""
_RUN_WITHOUT_QUOTA = ("nos", "scheduler-plugins", "koordinator", "kubernetes")
"""Systems that run pods without a quota (Koordinator: under its default quota); others do not run pods without a queue."""


POLICIES: Mapping[str, Callable[[], Policy]] = {
    "nos": NosPolicy,
    "scheduler-plugins": ElasticPolicy,
    "koordinator": KoordinatorPolicy,
    "volcano": VolcanoPolicy,
    "kai": KaiPolicy,
    "kueue": KueuePolicy,
}
"""By system. Pods under a ResourceQuota are replayed as amounts, because no scheduler enforces it."""


@dataclass(frozen=True)
class Step:
    """Interval without changes, for one resource of one system."""

    start_ms: int
    end_ms: int
    holdings: Sequence[Holding]
    capacity: float
    """Amount to share, in the resource's unit."""

    @property
    def delivered(self) -> dict[str, float]:
        """Return the allocation of each quota."""
        return {each.quota.name: each.delivered for each in self.holdings}


def replay(
    system: str,
    resource: str,
    steps: Iterable[Step],
    change: Change = NO_CHANGE,
    requests: Sequence[Request] | None = None,
    rules: Rules = DEFAULT_RULES,
    past: Sequence[Past] = (),
) -> Iterator[Step]:
    """Yield steps with changed quotas and their allocation: pod by pod if ``requests`` is given, else as divisible amounts.

    At the start and after a gap, the replay begins with the recorded allocation.
    """
    if requests is not None and system != "kubernetes":
        policy = POLICIES[system]()
        policy.begin(past, rules)
        governed = [request for request in requests if request.quota not in change.removed]
        yield from _pod_by_pod(Replay(policy, resource, governed, rules), resource, steps, change, system in _RUN_WITHOUT_QUOTA)
        return
    before: dict[str, float] = {}
    end_ms, changing = None, _changing(resource, change)
    for step in steps:
        now = _replayed(
            system, resource, step, changing(step.holdings), change, before if step.start_ms == end_ms else step.delivered
        )
        yield now
        before, end_ms = now.delivered, step.end_ms


def _pod_by_pod(found: Replay, resource: str, steps: Iterable[Step], change: Change, runs_on: bool) -> Iterator[Step]:
    end_ms, changing = None, _changing(resource, change)
    for step in steps:
        holdings = changing(step.holdings)
        outside = _use_without_quota(runs_on, step.holdings, change, step.capacity)
        there = [each for each in holdings if each.quota.name not in change.removed] if change.removed else holdings
        capacity = step.capacity - sum(outside.values())
        if step.start_ms == end_ms:
            found.step(step.start_ms, there, capacity)
        else:
            found.restart(step.start_ms, there, capacity, is_changed=change != NO_CHANGE)
        held = found.now.used | outside
        after = [Holding(quota, demanded, max(0.0, held[quota.name])) for quota, demanded, _ in holdings]
        yield Step(step.start_ms, step.end_ms, after, step.capacity)
        end_ms = step.end_ms


def _changing(resource: str, change: Change) -> Callable[[Sequence[Holding]], Sequence[Holding]]:
    """Return a function that applies the change to quotas; it caches results, because the same quotas recur at every step."""
    known: dict[int, tuple[Quota, Quota]] = {}

    def quota_of(quota: Quota) -> Quota:
        if id(quota) not in known:
            known[id(quota)] = quota, changed(quota, resource, change)  # keeps a reference, so the id is not reused
        return known[id(quota)][1]

    if change == NO_CHANGE:
        return lambda holdings: holdings
    return lambda holdings: [Holding(quota_of(quota), demanded, delivered) for quota, demanded, delivered in holdings]


def _replayed(
    system: str, resource: str, step: Step, holdings: Sequence[Holding], change: Change, before: Mapping[str, float]
) -> Step:
    outside = _use_without_quota(system in _RUN_WITHOUT_QUOTA, step.holdings, change, step.capacity)
    governed = [each for each in holdings if each.quota.name not in change.removed]
    held = outside | allocate(system, resource, governed, step.capacity - sum(outside.values()), before)
    return replace(step, holdings=[each._replace(delivered=_held(each, holdings, held)) for each in holdings])


def _use_without_quota(runs_on: bool, holdings: Sequence[Holding], change: Change, capacity: float) -> dict[str, float]:
    """Return the allocation of pods of removed quotas: their requests, since no quota limits them, or 0 where they cannot run."""
    left, held = capacity, dict[str, float]()
    for each in leaves(holdings) if change.removed else ():
        if each.quota.name in change.removed:
            held[each.quota.name] = min(each.demanded, left) if runs_on else 0.0
            left -= held[each.quota.name]
    return held


def _held(holding: Holding, holdings: Sequence[Holding], held: Mapping[str, float]) -> float:
    """Return the allocation of a quota; for a parent, the sum of the quotas under it."""
    name = holding.quota.name
    return held[name] if name in held else sum(held.get(each.quota.name, 0.0) for each in below(name, holdings))
