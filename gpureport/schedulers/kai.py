"""KAI-Scheduler's fair share (Run:ai's too): quota first, the rest by priority and weight, in whole GPUs.

Source: KAI-Scheduler d5bc503 (2026-08), the plugin proportion. One resource and one level of the tree at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Past, Rules, Share, children, roots
from gpureport.schedulers.pods import Policy, Request, Situation

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
        """Request within its limit."""
        return self.request if self.limit is None else min(self.request, self.limit)


@dataclass(frozen=True)
class Division:
    """Share of each queue, and the rest that no queue gets."""

    fair_share: dict[str, float]
    remaining: float


def divide(amount: float, queues: Sequence[Queue], k: float = 0) -> Division:
    """The amount shared out among siblings.

    Each gets its quota as far as it requests it, though quotas may be more than there is. The rest goes to one priority after the
    other, highest first, by weight: those still short get whole units, rounds are repeated while a queue needed less
    than its part. What rounding left over in all priorities is what the next one shares; only what is left after the last
    goes in steps of at most one to the largest fractions, of equals to the oldest, again highest priority first.
    """
    deserved = {queue.name: amount if math.isinf(queue.quota) else queue.quota for queue in queues}
    fair = {queue.name: min(deserved[queue.name], queue.requestable) for queue in queues}
    left = max(0.0, amount - sum(fair.values()))
    by_priority = {queue.priority: [each for each in queues if each.priority == queue.priority] for queue in queues}
    fractions: dict[int, dict[str, float]] = {}
    for priority in sorted(by_priority, reverse=True):
        left, fractions[priority] = _divide_rest(left, by_priority[priority], fair, k)
    for priority, waiting in fractions.items():
        left = _add_fractions(left, by_priority[priority], waiting, fair)
    return Division(fair, left)


def _divide_rest(left: float, queues: Sequence[Queue], fair: dict[str, float], k: float) -> tuple[float, dict[str, float]]:
    """Raises ``fair`` by whole units; what is left after the queues of one priority had their rounds, and their fractions."""
    fractions: dict[str, float] = {}
    is_repeated = True
    while is_repeated and left > 0:
        parts = _parts(left, queues, fair, k)
        is_repeated = False
        for queue, part in parts:
            wanted = queue.requestable - fair[queue.name]
            share = wanted if wanted <= part else float(math.floor(part))
            if wanted <= part:
                fractions.pop(queue.name, None)
            elif part > share:
                fractions[queue.name] = part - share
            fair[queue.name] += share
            left -= share
            is_repeated |= share > 0 and wanted < part
    return left, fractions


def _parts(left: float, queues: Sequence[Queue], fair: dict[str, float], k: float) -> list[tuple[Queue, float]]:
    """The part of each queue that is short, by weight and, where ``k`` is not 0, against its past use."""
    short = [queue for queue in queues if fair[queue.name] < queue.requestable]
    weights = sum(queue.weight for queue in short)
    if not weights:
        return []
    normal = [queue.weight / weights for queue in short]
    adjusted = [max(0.0, weight + k * (weight - queue.usage_ratio)) for queue, weight in zip(short, normal, strict=True)]
    total = sum(adjusted)
    if not total:
        return []
    return [(queue, left * weight / total) for queue, weight in zip(short, adjusted, strict=True) if queue.weight]


def _add_fractions(left: float, queues: Sequence[Queue], fractions: dict[str, float], fair: dict[str, float]) -> float:
    waiting = [queue for queue in queues if queue.name in fractions]
    for queue in sorted(waiting, key=lambda each: (-fractions[each.name], each.created_at_ms, each.uid)):
        if left <= 0:
            break
        step = min(1.0, left)
        fair[queue.name] += step
        left -= step
    return left


def shares(
    resource: str,
    holdings: Sequence[Holding],
    capacity: float,
    rules: Rules = DEFAULT_RULES,
    usage: Mapping[str, float] | None = None,
) -> dict[str, Share]:
    """Fair share of every queue, parents too, level by level: children share what their parent got.

    ``usage``: past use of each over the capacity of that time, which counts by ``rules.k_value``.
    """
    found, past = dict[str, float](), usage or {}
    levels = [(roots(holdings), capacity)]
    while levels:
        siblings, amount = levels.pop()
        queues = [_queue(resource, each, holdings, past.get(each.quota.name, 0.0)) for each in siblings]
        parts = divide(amount, queues, rules.k_value if usage else 0.0).fair_share
        found |= parts
        levels += [(own, part) for name, part in parts.items() if (own := children(name, holdings))]
    return {name: Share(amount) for name, amount in found.items()}


def _queue(resource: str, each: Holding, holdings: Sequence[Holding], past: float) -> Queue:
    quota, terms = each.quota, each.quota.terms.get(resource)
    if terms is None:  # a queue without terms of the resource may have none
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
        past,
    )


def _request(each: Holding, holdings: Sequence[Holding]) -> float:
    """Request of its pods; of a parent, of its children."""
    own = children(each.quota.name, holdings)
    return sum(_request(child, holdings) for child in own) if own else each.demanded


class KaiPolicy(Policy):
    """The queue that has least of its fair share first, within limits; the fair share is taken back from those beyond theirs."""

    follows_demand = True

    def __init__(self) -> None:
        self._past = deque[Past]()
        self._used: dict[str, float] = defaultdict(float)
        self._capacity = self._at_ms = 0.0
        self._before: Situation | None = None

    def begin(self, past: Sequence[Past], rules: Rules) -> None:
        """Use that was recorded before counts too."""
        for each in past:
            self._add(each, rules)

    def update(self, now: Situation) -> None:
        """Fair shares follow requests, and what was used in the window before."""
        self._remember(now)
        usage = {name: used / self._capacity for name, used in self._used.items()} if self._capacity > 1e-9 else None
        found = shares(now.resource, now.holdings, now.capacity, now.rules, usage)
        self._share = {name: share.fair_share or 0.0 for name, share in found.items()}

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Level by level, the one with the least of its fair share."""
        levels = [self._saturation(now, name) for name in reversed(now.chain(request.quota))]
        return levels, *request.rank

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Less important pods of its own queue; while it stays within its fair share, those of queues beyond theirs."""
        own = now.less_important(request)
        chain = now.chain(request.quota)
        if not all(now.is_within(name, request.amount, self._share.get(name, 0.0)) for name in chain):
            return own
        return [*own, *(each for each in now.least_important() if each.quota != request.quota)]

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Another queue's only while it, and all that do not contain both, have more than their fair share."""
        apart = [name for name in now.chain(victim.quota) if name not in now.chain(request.quota)]
        return all(now.used[name] > self._share.get(name, 0.0) + 1e-9 for name in apart)

    def _remember(self, now: Situation) -> None:
        """Use of each queue since the last time, and capacity; a gap is unknown."""
        hours = (now.at_ms - self._at_ms) / 3_600_000 if now is self._before else 0.0
        if now.rules.k_value:
            self._add(Past(now.at_ms, {name: now.used[name] * hours for name in now.quotas}, now.capacity * hours), now.rules)
        self._before, self._at_ms = now, now.at_ms

    def _add(self, latest: Past, rules: Rules) -> None:
        """Older use counts less by its half-life, and not at all before the window."""
        self._fade((self._at_ms - latest.end_ms) / 3_600_000, rules)
        self._at_ms = latest.end_ms
        self._past.append(latest)
        self._count(latest, 1.0)
        while self._past and self._past[0].end_ms <= self._at_ms - rules.window_hours * 3_600_000:
            gone = self._past.popleft()
            self._count(gone, -_faded((gone.end_ms - self._at_ms) / 3_600_000, rules))

    def _fade(self, hours: float, rules: Rules) -> None:
        self._used = defaultdict(float, {name: used * _faded(hours, rules) for name, used in self._used.items()})
        self._capacity *= _faded(hours, rules)

    def _count(self, past: Past, part: float) -> None:
        self._capacity += past.capacity * part
        for name, used in past.used.items():
            self._used[name] += used * part

    def _saturation(self, now: Situation, name: str) -> float:
        share = self._share.get(name, 0.0)
        return now.used[name] / share if share else math.inf


def _faded(hours: float, rules: Rules) -> float:
    """Weight of use that is so many hours (below 0) ago."""
    return 2.0 ** (hours / rules.half_life_hours) if rules.half_life_hours else 1.0
