"""Volcano's deserved resources: by weight (plugin proportion) or as configured (plugin capacity); a cluster uses one plugin.

Source: volcano ed72c7c (2026-08). Amounts are vectors over resources, in base units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share, children, leaves
from gpureport.schedulers.pods import Policy, Request, Situation

Amounts = Mapping[str, float]
_NEGLIGIBLE = 1e-4
"""Volcano treats smaller amounts as 0: a tenth of its unit, which is a thousandth."""
_MAX_ROUNDS = 1000
_ALWAYS_THERE = ("cpu", "memory")
_ROOT = "root"


@dataclass(frozen=True)
class Queue:
    """A queue in one scheduling cycle."""

    name: str
    request: Amounts
    weight: float = 1
    guarantee: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    """Empty where there is no limit."""


def real_capabilities(capacity: Amounts, queues: Sequence[Queue]) -> dict[str, dict[str, float]]:
    """Return the most that each queue can have: its capability, and at most capacity outside the guarantees of others."""
    free = {
        resource: max(0.0, amount - sum(each.guarantee.get(resource, 0) for each in queues))
        for resource, amount in capacity.items()
    }
    return {queue.name: {resource: _limit(resource, amount, queue) for resource, amount in free.items()} for queue in queues}


def _limit(resource: str, free: float, queue: Queue) -> float:
    """Return unguaranteed capacity plus the queue's guarantee, at most its capability.

    No limit where guarantees take all of a device resource: Volcano drops zero amounts, and an absent one sets no limit.
    """
    own = queue.guarantee.get(resource, 0)
    if free <= 0 and not own and resource not in _ALWAYS_THERE:
        return math.inf
    return min(free + own, queue.capability.get(resource, math.inf))


def proportion(capacity: Amounts, queues: Sequence[Queue]) -> dict[str, dict[str, float]]:
    """Return the deserved amount of each queue by weight, per resource.

    Rounds: the remainder is split by weight among queues still short. Each amount is limited to the real capability and
    the request, and raised to the guarantee; the excess goes into the next round. A queue without pods gets only its
    guarantee.
    """
    limits = real_capabilities(capacity, queues)
    deserved = {queue.name: {resource: queue.guarantee.get(resource, 0.0) for resource in capacity} for queue in queues}
    short = [queue for queue in queues if any(queue.request.values())]
    deserved |= {queue.name: dict.fromkeys(capacity, 0.0) for queue in short}
    remaining = dict(capacity)
    for _ in range(_MAX_ROUNDS):
        weights = sum(queue.weight for queue in short)
        if not weights or all(amount < _NEGLIGIBLE for amount in remaining.values()):
            break
        before = {queue.name: deserved[queue.name] for queue in short}
        for queue in short:
            deserved[queue.name] = _raised(queue, before[queue.name], remaining, queue.weight / weights, limits[queue.name])
        short = [queue for queue in short if not _is_met(queue, deserved[queue.name], before[queue.name])]
        for resource, amount in remaining.items():
            grown = sum(deserved[name][resource] - old[resource] for name, old in before.items())
            remaining[resource] = max(0.0, amount - grown)
    return deserved


def _raised(queue: Queue, before: Amounts, remaining: Amounts, ratio: float, limit: Amounts) -> dict[str, float]:
    return {
        resource: max(
            min(before[resource] + amount * ratio, limit[resource], queue.request.get(resource, 0)),
            queue.guarantee.get(resource, 0),
        )
        for resource, amount in remaining.items()
    }


def _is_met(queue: Queue, deserved: Amounts, before: Amounts) -> bool:
    has_all = all(queue.request.get(resource, 0) <= amount + _NEGLIGIBLE for resource, amount in deserved.items())
    return has_all or deserved == before


def capacity_deserved(configured: float, real_capability: float, guarantee: float = 0) -> float:
    """Return the deserved amount under plugin capacity: as configured, at most the real capability, at least the guarantee."""
    return max(min(configured, real_capability), guarantee)


def shares(resource: str, holdings: Sequence[Holding], capacity: float, rules: Rules = DEFAULT_RULES) -> dict[str, Share]:
    """Return each queue's deserved amount: as configured where any queue has ``deserved``, else by weight among leaf queues.

    With ``enableHierarchy``, parents have their configured amounts, and the root has the sum of its queues. Amounts are
    not limited to the capability: the documentation says so, but the code only logs a warning.
    """
    if _is_hierarchy(holdings):
        return _configured_in_tree(resource, holdings)
    queues = {each.quota.name: queue(resource, each) for each in leaves(holdings)}
    configured = {each.quota.name: own for each in leaves(holdings) if (own := each.quota.of(resource).deserved) is not None}
    if configured:
        limits = real_capabilities({resource: capacity}, list(queues.values()))
        return {
            name: Share(capacity_deserved(configured.get(name, 0), limits[name][resource], found.guarantee[resource]))
            for name, found in queues.items()
        }
    deserved = proportion({resource: capacity}, list(queues.values()))
    return {name: Share(amounts[resource]) for name, amounts in deserved.items()}


def _is_hierarchy(holdings: Sequence[Holding]) -> bool:
    return any(each.quota.parent not in ("", _ROOT) for each in holdings)


def _is_under_root(each: Holding) -> bool:
    return each.quota.parent in ("", _ROOT) and each.quota.name != _ROOT


def _configured_in_tree(resource: str, holdings: Sequence[Holding]) -> dict[str, Share]:
    terms = {each.quota.name: each.quota.of(resource) for each in holdings}
    found = {name: max(term.deserved or 0.0, term.guaranteed or 0.0) for name, term in terms.items()}
    if _ROOT in found:
        found[_ROOT] = sum(found[each.quota.name] for each in holdings if _is_under_root(each))
    return {name: Share(amount) for name, amount in found.items()}


def limits(resource: str, holdings: Sequence[Holding], capacity: float) -> dict[str, float]:
    """Return the most that each queue can have, level by level: its parent's amount minus the guarantees of siblings."""
    return _limits(resource, [each for each in holdings if _is_under_root(each)], holdings, capacity)


def _limits(resource: str, siblings: Sequence[Holding], holdings: Sequence[Holding], amount: float) -> dict[str, float]:
    most = real_capabilities({resource: amount}, [queue(resource, each) for each in siblings])
    found = {name: limits[resource] for name, limits in most.items()}
    for name, part in list(found.items()):
        found |= _limits(resource, children(name, holdings), holdings, part)
    return found


def queue(resource: str, each: Holding) -> Queue:
    """Return the queue for a scheduling cycle; its request is the holding's demand for one resource."""
    terms = each.quota.of(resource)
    capability = {} if terms.cap is None else {resource: terms.cap}
    weight = 1 if terms.weight is None else terms.weight
    return Queue(each.quota.name, {resource: each.demanded}, weight, {resource: terms.guaranteed or 0}, capability)


def policy_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the policy of a Queue: whether other queues may reclaim what it uses beyond its deserved amount."""
    return {"reclaimable": str(spec.get("reclaimable", True))}


class VolcanoPolicy(Policy):
    """Admission up to deserved (proportion) or up to unguaranteed capacity (capacity); deserved amounts are reclaimed."""

    follows_demand = True

    def update(self, now: Situation) -> None:
        """Recompute deserved amounts, which depend on requests."""
        found = shares(now.resource, now.holdings, now.capacity)
        self._deserved = {name: share.fair_share or 0.0 for name, share in found.items()}
        is_capacity = _is_hierarchy(now.holdings) or any(now.terms(name).deserved is not None for name in now.quotas)
        self._parents = {quota.parent for quota in now.quotas.values()}
        self._priority = {name: quota.priority or 0 for name, quota in now.quotas.items()}
        self._most = limits(now.resource, now.holdings, now.capacity) if is_capacity else self._deserved

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Return the sort key: queue priority, then the smallest ratio of use to deserved amount."""
        deserved = self._deserved.get(request.quota, 0.0)
        return -self._priority.get(request.quota, 0), now.used[request.quota] / deserved if deserved else math.inf, *request.rank

    def admits(self, now: Situation, request: Request) -> bool:
        """Return whether capacity is free for the queue and all its ancestors; a queue with children admits nothing."""
        if request.quota in self._parents or not now.fits(request):
            return False
        return all(now.is_within(name, request.amount, self._most.get(name)) for name in now.chain(request.quota))

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Return lower-priority pods of the same queue and, within the deserved amount, pods of all other queues."""
        own = now.less_important(request)
        if not now.is_within(request.quota, request.amount, self._deserved.get(request.quota, 0.0)):
            return own
        return [*own, *(each for each in now.least_important() if each.quota != request.quota)]

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Return whether the victim's queue is the request's own, or is reclaimable and uses more than it deserves."""
        is_over = now.used[victim.quota] > self._deserved.get(victim.quota, 0.0) + _NEGLIGIBLE
        return victim.quota == request.quota or (is_over and now.quotas[victim.quota].policy.get("reclaimable") != "False")
