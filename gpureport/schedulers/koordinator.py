"""Koordinator's runtime quota: what each quota of a tree may use, resource by resource, of what its parent has.

Source: koord-scheduler's quota calculator, v1.8.0 and the commits after it (a7a1b76, 2026-07), which round differently.
Whole units: thousandths of cpu, else the resource's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share, children, roots
from gpureport.schedulers.pods import Policy, Request, Situation

Rounding = Literal["nearest", "largest-remainder"]
"""Up to v1.8.0 each part is rounded alone, so some is lost or allocated twice; later none is."""
NOT_SHARED = ("koordinator-system-quota", "koordinator-default-quota")
"""They take what they use before the rest is shared out."""


@dataclass(frozen=True)
class Sibling:
    """One of the quotas that share what their parent has of one resource."""

    name: str
    request: int
    """Request of its pods, or its children, at most its max."""
    minimum: int
    weight: int
    guaranteed: int = 0
    may_lend: bool = True

    @property
    def floor(self) -> int:
        """Amount that it has in any case, if it requests it."""
        return max(self.minimum, self.guaranteed)


def redistribute(amount: int, siblings: Sequence[Sibling], rounding: Rounding) -> dict[str, int]:
    """Each sibling's runtime of the amount.

    Who requests no more than its floor has what it requests, or the floor if it does not lend. The others start at their
    floors and split the rest by weight; what one gets beyond its request is split again among those still short.
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
    """Mins of siblings that together are more than there is: the fixed ones first, the others in proportion, truncated."""
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
    """Runtime of every quota of the trees, parents too, of a cluster that has ``capacity`` of the resource."""
    before = {each.quota.name: each.delivered for each in holdings if each.quota.name in NOT_SHARED}
    shared = sorted((each for each in holdings if each.quota.name not in before), key=lambda each: each.quota.name)
    runtime = _Tree(resource, shared, rounding, rules).runtime(roots(shared), _units(resource, capacity - sum(before.values())))
    scale = _scale(resource)
    return {name: Share(amount) for name, amount in before.items()} | {
        name: Share(amount / scale) for name, amount in runtime.items()
    }


def _scale(resource: str) -> int:
    return 1000 if resource == "cpu" else 1


def _units(resource: str, amount: float) -> int:
    return math.ceil(round(amount * _scale(resource), 6))


class _Tree:
    """Quotas under their parents, for one resource."""

    def __init__(self, resource: str, holdings: Sequence[Holding], rounding: Rounding, rules: Rules) -> None:
        self._resource, self._rounding, self._holdings, self._rules = resource, rounding, holdings, rules

    def runtime(self, siblings: Sequence[Holding], amount: int) -> dict[str, int]:
        """Runtime of these, and of what is under them."""
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
        """Request: of a parent its children's limited requests, without lending at least its min; at most its max."""
        own = children(each.quota.name, self._holdings)
        requested = sum(map(self._limited_request, own)) if own else _units(self._resource, each.demanded)
        if not each.quota.may_lend:
            requested = max(requested, _units(self._resource, each.quota.of(self._resource).guaranteed or 0))
        cap = each.quota.of(self._resource).cap
        return requested if cap is None else min(requested, _units(self._resource, cap))


class KoordinatorPolicy(Policy):
    """Within the runtime; pods of a quota are preempted by more important ones of it."""

    follows_demand = True

    def update(self, now: Situation) -> None:
        """Runtimes anew: they follow requests."""
        self._runtime = shares(now.resource, [each for each in now.holdings if not each.quota.tree], now.capacity, now.rules)
        for name, share in self._runtime.items() if now.rules.monitors_quotas else ():
            for pod in now.least_important([name]):
                if share.fair_share is not None and now.used[name] > share.fair_share + 1e-9:
                    now.release(pod)
                    now.pending[pod.uid] = pod

    def admits(self, now: Situation, request: Request) -> bool:
        """As far as its quota's runtime reaches; a quota of another tree as far as its max."""
        share = self._runtime.get(request.quota)
        return now.fits(request) and (share is None or now.is_within(request.quota, request.amount, share.fair_share))

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Less important pods of its own quota."""
        return now.less_important(request)
