"""KAI-Scheduler's fair share (Run:ai's too): quota first, the rest by priority and weight, in whole GPUs.

Source: KAI-Scheduler d5bc503 (2026-08), the plugin proportion. One resource and one level of the tree at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share
from gpureport.schedulers.tree import children, roots

DEFAULT_PRIORITY = 100


@dataclass(frozen=True)
class Queue:
    """A queue among its siblings."""

    name: str
    quota: float
    """inf where it is unlimited."""
    request: float
    weight: float
    limit: float | None = None
    priority: int = DEFAULT_PRIORITY
    created_at_ms: int = 0
    uid: str = ""
    usage_ratio: float = 0
    """Its past use over the cluster's capacity; counts only where ``k`` is not 0."""

    @property
    def requestable(self) -> float:
        """What it asks for within its limit."""
        return self.request if self.limit is None else min(self.request, self.limit)


@dataclass(frozen=True)
class Division:
    """What each queue may have, and what nobody gets."""

    fair_share: dict[str, float]
    remaining: float


def divide(amount: float, queues: Sequence[Queue], k: float = 0) -> Division:
    """The amount shared out among siblings.

    Each gets its quota as far as it asks for it, though quotas may be more than there is. The rest goes to one priority after the
    other, highest first, by weight: those still short get whole units, rounds are repeated while somebody needed less
    than its part. What rounding left over in all priorities is what the next one shares; only what is left after the last
    goes in steps of at most one to the largest fractions, of equals to the oldest, again highest priority first.
    """
    deserved = {queue.name: amount if math.isinf(queue.quota) else queue.quota for queue in queues}
    given = {queue.name: min(deserved[queue.name], queue.requestable) for queue in queues}
    left = max(0.0, amount - sum(given.values()))
    by_priority = {queue.priority: [each for each in queues if each.priority == queue.priority] for queue in queues}
    fractions: dict[int, dict[str, float]] = {}
    for priority in sorted(by_priority, reverse=True):
        left, fractions[priority] = _divide_rest(left, by_priority[priority], given, k)
    for priority, waiting in fractions.items():
        left = _give_fractions(left, by_priority[priority], waiting, given)
    return Division(given, left)


def _divide_rest(left: float, queues: Sequence[Queue], given: dict[str, float], k: float) -> tuple[float, dict[str, float]]:
    """Raises ``given`` by whole units; what is left after the queues of one priority had their rounds, and their fractions."""
    fractions: dict[str, float] = {}
    is_repeated = True
    while is_repeated and left > 0:
        parts = _parts(left, queues, given, k)
        is_repeated = False
        for queue, part in parts:
            wanted = queue.requestable - given[queue.name]
            share = wanted if wanted <= part else float(math.floor(part))
            if wanted <= part:
                fractions.pop(queue.name, None)
            elif part > share:
                fractions[queue.name] = part - share
            given[queue.name] += share
            left -= share
            is_repeated |= share > 0 and wanted < part
    return left, fractions


def _parts(left: float, queues: Sequence[Queue], given: dict[str, float], k: float) -> list[tuple[Queue, float]]:
    """The part of each queue that is short, by weight and, where ``k`` is not 0, against its past use."""
    short = [queue for queue in queues if given[queue.name] < queue.requestable]
    weights = sum(queue.weight for queue in short)
    if not weights:
        return []
    normal = [queue.weight / weights for queue in short]
    turned = [max(0.0, weight + k * (weight - queue.usage_ratio)) for queue, weight in zip(short, normal, strict=True)]
    total = sum(turned)
    if not total:
        return []
    return [(queue, left * weight / total) for queue, weight in zip(short, turned, strict=True) if queue.weight]


def _give_fractions(left: float, queues: Sequence[Queue], fractions: dict[str, float], given: dict[str, float]) -> float:
    waiting = [queue for queue in queues if queue.name in fractions]
    for queue in sorted(waiting, key=lambda each: (-fractions[each.name], each.created_at_ms, each.uid)):
        if left <= 0:
            break
        step = min(1.0, left)
        given[queue.name] += step
        left -= step
    return left


def shares(resource: str, holdings: Sequence[Holding], capacity: float, rules: Rules = DEFAULT_RULES) -> dict[str, Share]:
    """Fair share of every queue, parents too, level by level: children share what their parent got."""
    return {name: Share(amount) for name, amount in _level(resource, roots(holdings), holdings, capacity).items()}


def _level(resource: str, siblings: Sequence[Holding], holdings: Sequence[Holding], amount: float) -> dict[str, float]:
    found = divide(amount, [_queue(resource, each, holdings) for each in siblings]).fair_share
    for name, part in list(found.items()):
        found |= _level(resource, children(name, holdings), holdings, part)
    return found


def _queue(resource: str, each: Holding, holdings: Sequence[Holding]) -> Queue:
    quota, terms = each.quota, each.quota.terms.get(resource)
    if terms is None:  # a queue that says nothing of the resource may have none
        return Queue(quota.name, 0, _request(each, holdings), 0, 0)
    return Queue(
        quota.name,
        terms.guaranteed or 0,
        _request(each, holdings),
        terms.weight or 0,
        terms.cap,
        DEFAULT_PRIORITY if quota.priority is None else quota.priority,
        quota.created_at_ms or 0,
        quota.uid,
    )


def _request(each: Holding, holdings: Sequence[Holding]) -> float:
    """What its pods ask for; a parent what its children do."""
    own = children(each.quota.name, holdings)
    return sum(_request(child, holdings) for child in own) if own else each.demanded
