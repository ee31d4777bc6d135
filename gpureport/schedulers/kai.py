"""KAI-Scheduler's fair share (also Run:ai's): quotas first, then the rest by priority and weight, in whole GPUs.

Source: KAI-Scheduler d5bc503 (2026-08), plugin proportion. Each call handles one resource and one tree level.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Past, Rules, Share, children, roots
from gpureport.schedulers.pods import Policy, Request, Situation

DEFAULT_PRIORITY = 100
_GPU = re.compile(r"(?:nvidia|amd)\.com/gpu|nvidia\.com/mig-(\d+)g\.\d+gb|[^/]*gpu[^/]*", re.IGNORECASE)
"""Resources and device classes that count as GPUs; a name without a domain is a class, or a fraction."""


def gpus(amounts: Mapping[str, float]) -> float | None:
    """Return GPUs as KAI counts them, None where no resource is one: a MIG instance counts as one GPU for each of its slices."""
    counted = [amount * int(found[1] or 1) for name, amount in sorted(amounts.items()) if (found := _GPU.fullmatch(name))]
    return sum(counted) if counted else None


@dataclass(frozen=True)
class Queue:
    """A queue among its siblings."""

    name: str
    quota: float
    """inf where the quota is unlimited."""
    request: float
    weight: float
    limit: float | None = None
    priority: int = DEFAULT_PRIORITY
    created_at_ms: int = 0
    uid: str = ""
    usage_ratio: float = 0
    """Past use over the cluster's capacity; counts only where ``k`` is not 0."""

    @property
    def requestable(self) -> float:
        """Return the request, at most the limit."""
        return self.request if self.limit is None else min(self.request, self.limit)


@dataclass(frozen=True)
class Division:
    """Fair share of each queue, and the remainder that no queue gets."""

    fair_share: dict[str, float]
    remaining: float


def divide(amount: float, queues: Sequence[Queue], k: float = 0) -> Division:
    """Divide the amount among siblings.

    Each queue first gets its request up to its quota, even if quotas exceed the amount. The rest goes to priorities in
    descending order, by weight. Queues still short get whole units; rounds repeat while a queue needs less than its part.
    The remainder of rounding goes to the next priority. The last remainder is added in steps of at most one, highest
    priority first: to the largest fractions, then to the oldest queue.
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
    """Raise ``fair`` by whole units for queues of one priority; return the remaining amount and the fractions by queue."""
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
    """Return the part of each queue still short, by weight and, where ``k`` is not 0, adjusted for past use."""
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
    """Return the fair share of every queue, parents included, level by level: children divide their parent's share.

    ``usage``: past use of each queue over the capacity of that period, weighted by ``rules.k_value``.
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
    if terms is None:  # a queue without terms for the resource has quota, weight and limit 0
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
    """Return the request of its pods; for a parent, the sum of its children's."""
    own = children(each.quota.name, holdings)
    return sum(_request(child, holdings) for child in own) if own else each.demanded


class KaiPolicy(Policy):
    """Queues with the smallest ratio of use to fair share first, within limits; fair shares are reclaimed from others."""

    follows_demand = True

    def __init__(self) -> None:
        self._past = deque[Past]()
        self._used: dict[str, float] = defaultdict(float)
        self._capacity = self._at_ms = 0.0
        self._before: Situation | None = None

    def begin(self, past: Sequence[Past], rules: Rules) -> None:
        """Add the recorded past use."""
        for each in past:
            self._add(each, rules)

    def update(self, now: Situation) -> None:
        """Recompute fair shares, which depend on requests and on past use in the window."""
        self._record_use(now)
        usage = {name: used / self._capacity for name, used in self._used.items()} if self._capacity > 1e-9 else None
        found = shares(now.resource, now.holdings, now.capacity, now.rules, usage)
        self._share = {name: share.fair_share or 0.0 for name, share in found.items()}

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Return the sort key: ratios of use to fair share, from the root level down."""
        levels = [self._saturation(now, name) for name in reversed(now.chain(request.quota))]
        return levels, *request.rank

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Return lower-priority pods of the same queue and, within its fair share, pods of all other queues."""
        own = now.less_important(request)
        chain = now.chain(request.quota)
        if not all(now.is_within(name, request.amount, self._share.get(name, 0.0)) for name in chain):
            return own
        return [*own, *(each for each in now.least_important() if each.quota != request.quota)]

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Return whether each ancestor of the victim that does not contain the request uses more than its fair share."""
        apart = [name for name in now.chain(victim.quota) if name not in now.chain(request.quota)]
        return all(now.used[name] > self._share.get(name, 0.0) + 1e-9 for name in apart)

    def _record_use(self, now: Situation) -> None:
        """Add the use of each queue and the capacity since the last update; a gap is unknown and adds nothing."""
        hours = (now.at_ms - self._at_ms) / 3_600_000 if now is self._before else 0.0
        if now.rules.k_value:
            self._add(Past(now.at_ms, {name: now.used[name] * hours for name in now.quotas}, now.capacity * hours), now.rules)
        self._before, self._at_ms = now, now.at_ms

    def _add(self, latest: Past, rules: Rules) -> None:
        """Add past use; older use decays with the half-life, and use before the window is removed."""
        self._decay((self._at_ms - latest.end_ms) / 3_600_000, rules)
        self._at_ms = latest.end_ms
        self._past.append(latest)
        self._add_part(latest, 1.0)
        while self._past and self._past[0].end_ms <= self._at_ms - rules.window_hours * 3_600_000:
            expired = self._past.popleft()
            self._add_part(expired, -_decay_factor((expired.end_ms - self._at_ms) / 3_600_000, rules))

    def _decay(self, hours: float, rules: Rules) -> None:
        self._used = defaultdict(float, {name: used * _decay_factor(hours, rules) for name, used in self._used.items()})
        self._capacity *= _decay_factor(hours, rules)

    def _add_part(self, past: Past, part: float) -> None:
        self._capacity += past.capacity * part
        for name, used in past.used.items():
            self._used[name] += used * part

    def _saturation(self, now: Situation, name: str) -> float:
        share = self._share.get(name, 0.0)
        return now.used[name] / share if share else math.inf


def _decay_factor(hours: float, rules: Rules) -> float:
    """Return the weight of use at an offset in hours (negative is in the past)."""
    return 2.0 ** (hours / rules.half_life_hours) if rules.half_life_hours else 1.0
