"""Koordinator's runtime quota: amount of the parent's resource that each quota of a tree may use.

Source: koord-scheduler's quota calculator, v1.8.0 and later commits (a7a1b76, 2026-07), which round differently.
Amounts are whole units: thousandths for cpu, else the resource's own unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share, children, roots
from gpureport.schedulers.pods import Policy, Request, Situation

Rounding = Literal["nearest", "largest-remainder"]
"""Up to v1.8.0 ("nearest"), parts are rounded separately, so the sum may be too low or too high; later it is exact."""
NOT_SHARED = ("koordinator-system-quota", "koordinator-default-quota")
"""Quotas whose use is subtracted before the remainder is shared."""
_ROOT = "koordinator-root-quota"  # contains all others, without terms of its own: its children share what there is


@dataclass(frozen=True)
class Sibling:
    """A quota among its siblings, which share one resource of their parent."""

    name: str
    request: int
    """Request of its pods or children, at most its max."""
    minimum: int
    weight: int
    guaranteed: int = 0
    may_lend: bool = True

    @property
    def floor(self) -> int:
        """Return the amount that it gets in any case, if it requests it."""
        return max(self.minimum, self.guaranteed)


def redistribute(amount: int, siblings: Sequence[Sibling], rounding: Rounding) -> dict[str, int]:
    """Return each sibling's runtime quota from the amount.

    A sibling that requests at most its floor gets its request, or the floor if it does not lend. The others start at
    their floors and share the rest by weight; an excess over a request is shared again among siblings still short.
    """
    runtime = {each.name: min(each.request, each.floor) if each.may_lend else each.floor for each in siblings}
    hungry = [each for each in siblings if each.request > each.floor]
    rest = amount - sum(runtime.values())
    while rest > 0 and sum(each.weight for each in hungry) > 0:
        for name, part in _parts(rest, hungry, rounding).items():
            runtime[name] += part
        rest = sum(max(0, runtime[each.name] - each.request) for each in hungry)
        runtime |= {each.name: min(runtime[each.name], each.request) for each in hungry}
        hungry = [each for each in hungry if runtime[each.name] < each.request]
    return runtime


def _parts(amount: int, hungry: Sequence[Sibling], rounding: Rounding) -> dict[str, int]:
    weights = sum(each.weight for each in hungry)
    if rounding == "nearest":
        return {each.name: int(each.weight * amount / weights + 0.5) for each in hungry}
    parts = {each.name: each.weight * amount // weights for each in hungry}
    by_remainder = sorted(
        (each for each in hungry if each.weight), key=lambda each: (-(each.weight * amount % weights), each.name)
    )
    for each in by_remainder[: amount - sum(parts.values())]:
        parts[each.name] += 1
    return parts


def scaled_minimums(amount: int, minimums: Mapping[str, int], fixed: frozenset[str] = frozenset()) -> dict[str, int]:
    """Return mins that fit the amount: fixed mins are kept, the others reduced in proportion and truncated."""
    if sum(minimums.values()) <= amount:
        return dict(minimums)
    scalable = sum(limit for name, limit in minimums.items() if name not in fixed)
    rest = max(0, amount - sum(limit for name, limit in minimums.items() if name in fixed))
    return {name: limit if name in fixed else int(rest * limit / scalable) if limit else 0 for name, limit in minimums.items()}


def shares(
    resource: str,
    holdings: Sequence[Holding],
    capacity: float,
    rules: Rules = DEFAULT_RULES,
    rounding: Rounding = "largest-remainder",
) -> dict[str, Share]:
    """Return the runtime quota of every quota, parents included, in a cluster with ``capacity`` of the resource."""
    before = {each.quota.name: each.delivered for each in holdings if each.quota.name in NOT_SHARED}
    rest = capacity - sum(before.values())
    alone = before | {each.quota.name: rest for each in holdings if each.quota.name == _ROOT}
    shared = sorted((each for each in holdings if each.quota.name not in alone), key=lambda each: each.quota.name)
    runtime = _Tree(resource, shared, rounding, rules).runtime(roots(shared), _units(resource, rest))
    parts = {name: part / _scale(resource) for name, part in runtime.items()}
    return {name: Share(amount) for name, amount in {**alone, **parts}.items()}


def _scale(resource: str) -> int:
    return 1000 if resource == "cpu" else 1


def _units(resource: str, amount: float) -> int:
    return math.ceil(round(amount * _scale(resource), 6))


class _Tree:
    """Quotas under their parents, for one resource."""

    def __init__(self, resource: str, holdings: Sequence[Holding], rounding: Rounding, rules: Rules) -> None:
        self._resource, self._rounding, self._holdings, self._rules = resource, rounding, holdings, rules

    def runtime(self, siblings: Sequence[Holding], amount: int) -> dict[str, int]:
        """Return the runtime quotas of these siblings and their descendants."""
        minimums = {each.quota.name: _units(self._resource, each.quota.of(self._resource).guaranteed or 0) for each in siblings}
        scaled = scaled_minimums(amount, minimums) if self._rules.scales_minimums else minimums
        found = redistribute(amount, [self._sibling(each, scaled[each.quota.name]) for each in siblings], self._rounding)
        for name, part in list(found.items()):
            found |= self.runtime(children(name, self._holdings), part)
        return found

    def _sibling(self, each: Holding, minimum: int) -> Sibling:
        terms = each.quota.of(self._resource)
        shown = terms.cap if terms.weight is None else terms.weight
        return Sibling(
            each.quota.name,
            self._limited_request(each),
            minimum,
            _units(self._resource, shown or 0),
            may_lend=each.quota.may_lend,
        )

    def _limited_request(self, each: Holding) -> int:
        """Return the request, at most max: of a parent, its children's limited requests; at least min where it does not lend."""
        own = children(each.quota.name, self._holdings)
        requested = sum(map(self._limited_request, own)) if own else _units(self._resource, each.demanded)
        if not each.quota.may_lend:
            requested = max(requested, _units(self._resource, each.quota.of(self._resource).guaranteed or 0))
        cap = each.quota.of(self._resource).cap
        return requested if cap is None else min(requested, _units(self._resource, cap))


class KoordinatorPolicy(Policy):
    """Admission within the runtime quota; a quota's pods are preempted by its own pods of higher priority."""

    follows_demand = True

    def update(self, now: Situation) -> None:
        """Recompute runtime quotas, which depend on requests; with monitorAllQuotas, evict pods above them."""
        self._runtime = shares(now.resource, [each for each in now.holdings if not each.quota.tree], now.capacity, now.rules)
        for name, share in self._runtime.items() if now.rules.monitors_quotas else ():
            for pod in now.least_important([name]):
                if share.fair_share is not None and now.used[name] > share.fair_share + 1e-9:
                    now.release(pod)
                    now.pending[pod.uid] = pod

    def admits(self, now: Situation, request: Request) -> bool:
        """Return whether the request fits within its quota's runtime; in another tree, only the max limits it."""
        share = self._runtime.get(request.quota)
        return now.fits(request) and (share is None or now.is_within(request.quota, request.amount, share.fair_share))

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Return pods of the same quota with lower priority."""
        return now.less_important(request)
