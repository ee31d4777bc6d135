"""Preemption under nos: waiting pods, pods that they may preempt, and the evidence in numbers.

Source: nos' scheduler plugin (12e0a72, 2024-04). nos selects victims on one node, spares some of them, and counts pods
nominated to a node. These are unknown here, so the result is the exposed pods, not the pods that will be preempted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gpureport.schedulers.model import Exposure, Pod
from gpureport.schedulers.nos import (
    ALWAYS_COMPARED,
    Units,
    Used,
    as_units,
    base,
    exceeds,
    fits,
    guaranteed_over_quota,
    maximum,
    minimum,
    sum_of_min,
    total,
)

WITHIN_MIN = "within min"
FAIR_SHARE = "fair share"
SAME_NAMESPACE = "same namespace"


@dataclass(frozen=True)
class Side:
    """Amounts of one quota for the comparison, in the scheduler's units."""

    used: Units
    minimum: Units
    guaranteed: Units
    maximum: Units | None

    @cached_property
    def bound(self) -> Units:
        """Return min plus guaranteed over-quota."""
        return total([self.minimum, self.guaranteed])

    @cached_property
    def above_min(self) -> tuple[str, ...]:
        """Return resources whose use exceeds min."""
        return exceeds(self.used, {}, self.minimum)

    @cached_property
    def above_bound(self) -> tuple[str, ...]:
        """Return resources whose use exceeds min plus guaranteed over-quota."""
        return exceeds(self.used, {}, self.bound)


@dataclass(frozen=True)
class _Victims:
    """Candidate pods, each with the condition of preemption, and the use that remains without all of them."""

    pods: Sequence[tuple[Pod, str]]
    left: Mapping[str, Units]
    """By quota that would lose pods."""
    left_in_all: Units


_Claim = tuple[str, int, bool, bool]
"""Criteria of preemption: namespace, priority, above min or not, within fair share or not."""


@dataclass(frozen=True)
class Situation:
    """State at one instant: use of each quota, pods that hold it, and pods with the label over-quota.

    One pod may represent several with the same quota, namespace, priority and label; its requests are their sum.
    """

    held: Sequence[Used]
    pods: Sequence[Pod]
    over_quota_uids: frozenset[str]
    _victims: dict[_Claim, _Victims] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def sides(self) -> Mapping[str, Side]:
        """Return the amounts of each quota, by quota name."""
        parts = guaranteed_over_quota(self.held)
        return {
            each.quota.name: Side(as_units(each.amounts), minimum(each.quota), parts[each.quota.name], maximum(each.quota))
            for each in self.held
        }

    @cached_property
    def min_in_all(self) -> Units:
        """Return the sum of all min."""
        return sum_of_min(self.held)

    @cached_property
    def used_in_all(self) -> Units:
        """Return the total use of all quotas."""
        return total(side.used for side in self.sides.values())

    @cached_property
    def _amounts(self) -> Mapping[str, Units]:
        return {pod.uid: as_units(pod.requests) for pod in self.pods}

    @cached_property
    def over_quota(self) -> Sequence[int]:
        """Return the indexes of pods that are over quota."""
        return [number for number, pod in enumerate(self.pods) if pod.uid in self.over_quota_uids]

    @cached_property
    def by_namespace(self) -> Mapping[str, Sequence[int]]:
        """Return indexes of ``pods`` by namespace."""
        found: dict[str, list[int]] = {}
        for number, pod in enumerate(self.pods):
            found.setdefault(pod.namespace, []).append(number)
        return found

    def victims(self, claim: _Claim) -> _Victims:
        """Return the candidate victims of a claim, computed once for all waiting pods with the same claim."""
        if claim not in self._victims:
            pods = list(_candidates(claim, self))
            gone: dict[str, list[Units]] = {}
            for pod, _ in pods:
                gone.setdefault(pod.quota, []).append(self._amounts[pod.uid])
            sums = {name: total(amounts) for name, amounts in gone.items()}
            left = {name: _less(self.sides[name].used, amounts) for name, amounts in sums.items()}
            self._victims[claim] = _Victims(pods, left, _less(self.used_in_all, total(sums.values())))
        return self._victims[claim]


def exposures(waiting: Iterable[Pod], situation: Situation) -> Iterator[Exposure]:
    """Yield pods that waiting pods may preempt, with condition and numbers; none where preemption would not help.

    Request within min: over-quota pods of other namespaces whose quota uses more than min; fair share and priority do not
    count. Request above min: lower-priority pods of the same namespace, with either label; and, within min plus guaranteed
    over-quota, over-quota pods of quotas that exceed theirs.
    If several waiting pods of one quota may preempt the same pods, only the first is reported.
    """
    reported = set()
    for pod in waiting:
        if pod.quota in situation.sides:
            request, side = as_units(pod.requests), situation.sides[pod.quota]
            is_over_min = not fits(side.used, request, side.minimum)
            claim = (pod.namespace, pod.priority, is_over_min, is_over_min and fits(side.used, request, side.bound))
            victims = situation.victims(claim)
            if (
                victims.pods
                and (pod.quota, claim) not in reported
                and not _is_rejected_without(victims, pod.quota, request, situation)
            ):
                reported.add((pod.quota, claim))
                for victim, condition in victims.pods:
                    evidence = _evidence(condition, pod, request, victim, situation)
                    yield Exposure(victim.uid, pod.quota, condition, evidence)


def _candidates(claim: _Claim, situation: Situation) -> Iterator[tuple[Pod, str]]:
    namespace, priority, is_over_min, is_within_share = claim
    own = situation.by_namespace.get(namespace, ()) if is_over_min else ()
    others = situation.over_quota if is_within_share or not is_over_min else ()
    for pod in (situation.pods[number] for number in sorted({*own, *others})):
        if pod.quota not in situation.sides:
            continue
        if pod.namespace == namespace:
            if is_over_min and pod.priority < priority:
                yield pod, SAME_NAMESPACE
        elif pod.uid in situation.over_quota_uids:
            if not is_over_min and situation.sides[pod.quota].above_min:
                yield pod, WITHIN_MIN
            elif is_within_share and situation.sides[pod.quota].above_bound:
                yield pod, FAIR_SHARE


def _less(used: Units, gone: Units) -> Units:
    return {name: amount - gone.get(name, 0) for name, amount in used.items()}


def _is_rejected_without(victims: _Victims, quota: str, request: Units, situation: Situation) -> bool:
    """Return whether max or the sum of min rejects the request even after removal of all its victims."""
    side = situation.sides[quota]
    left = victims.left.get(quota, side.used)
    is_over_max = side.maximum is not None and not fits(left, request, side.maximum)
    return is_over_max or not fits(victims.left_in_all, request, situation.min_in_all)


def _evidence(condition: str, waiting: Pod, request: Units, victim: Pod, situation: Situation) -> str:
    if condition == SAME_NAMESPACE:
        return f"priority {victim.priority} < {waiting.priority}"
    own, other = situation.sides[waiting.quota], situation.sides[victim.quota]
    if condition == WITHIN_MIN:
        resource = other.above_min[0]
        return f"{_fits(own.used, request, resource, own.minimum)} and {_more(other.used, resource, other.minimum)}"
    resource = other.above_bound[0]
    fits = _fits(own.used, request, resource, own.minimum, own.guaranteed)
    return f"{fits} and {_more(other.used, resource, other.minimum, other.guaranteed)}"


def _fits(used: Units, request: Units, resource: str, *bounds: Mapping[str, int]) -> str:
    if resource not in {*ALWAYS_COMPARED, *total(bounds)}:
        return f"{resource} not limited"
    left = f"{_shown(used, resource)} + {_shown(request, resource)}"
    return f"{resource} {left} <= {' + '.join(_shown(bound, resource) for bound in bounds)}"


def _more(used: Units, resource: str, *bounds: Mapping[str, int]) -> str:
    return f"{_shown(used, resource)} > {' + '.join(_shown(bound, resource) for bound in bounds)}"


def _shown(amounts: Mapping[str, int], resource: str) -> str:
    return f"{base(resource, amounts.get(resource, 0)):g}"
