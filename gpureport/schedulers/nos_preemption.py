"""Preemption under nos: a waiting pod, the pods that it may replace, and the numbers.

Source: nos' scheduler plugin (12e0a72, 2024-04). It takes victims of one node, spares what it can, and counts pods that are
nominated to a node; none of these is known here, so this is who is exposed, not who will be preempted.
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
    """A quota in the comparison, in the scheduler's units."""

    used: Units
    minimum: Units
    guaranteed: Units
    maximum: Units | None

    @cached_property
    def bound(self) -> Units:
        """Limit: min and guaranteed over-quota."""
        return total([self.minimum, self.guaranteed])

    @cached_property
    def above_min(self) -> tuple[str, ...]:
        """Resources of which it uses more than min."""
        return exceeds(self.used, {}, self.minimum)

    @cached_property
    def above_bound(self) -> tuple[str, ...]:
        """Resources of which it uses more than it may have."""
        return exceeds(self.used, {}, self.bound)


@dataclass(frozen=True)
class _Victims:
    """Pods with the condition under which each may be preempted, and what is used when all of them are gone."""

    pods: Sequence[tuple[Pod, str]]
    left: Mapping[str, Units]
    """By quota that loses pods."""
    left_in_all: Units


_Claim = tuple[str, int, bool, bool]
"""Criteria of preemption: namespace, priority, above min or not, within its fair share or not."""


@dataclass(frozen=True)
class Situation:
    """One instant: what each quota uses, the pods that hold it, and which of those have the label over-quota.

    One pod may stand for several of a quota, namespace, priority and label, with what they request together.
    """

    held: Sequence[Used]
    pods: Sequence[Pod]
    over_quota_uids: frozenset[str]
    _victims: dict[_Claim, _Victims] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def sides(self) -> Mapping[str, Side]:
        """Each quota's side, by its name."""
        parts = guaranteed_over_quota(self.held)
        return {
            each.quota.name: Side(as_units(each.amounts), minimum(each.quota), parts[each.quota.name], maximum(each.quota))
            for each in self.held
        }

    @cached_property
    def min_in_all(self) -> Units:
        """All min together."""
        return sum_of_min(self.held)

    @cached_property
    def used_in_all(self) -> Units:
        """Use of all quotas together."""
        return total(side.used for side in self.sides.values())

    @cached_property
    def _amounts(self) -> Mapping[str, Units]:
        return {pod.uid: as_units(pod.requests) for pod in self.pods}

    @cached_property
    def over_quota(self) -> Sequence[int]:
        """Pods that are over quota, by number."""
        return [number for number, pod in enumerate(self.pods) if pod.uid in self.over_quota_uids]

    @cached_property
    def by_namespace(self) -> Mapping[str, Sequence[int]]:
        """Numbers of ``pods`` by namespace."""
        found: dict[str, list[int]] = {}
        for number, pod in enumerate(self.pods):
            found.setdefault(pod.namespace, []).append(number)
        return found

    def victims(self, claim: _Claim) -> _Victims:
        """Victims of such pods, worked out once for all that wait alike."""
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
    """Pods that the waiting ones may preempt, each under which condition and with which numbers; none where none would help.

    Within min (its quota would use no more than min): pods over quota of other namespaces whose quota uses more than min;
    neither fair share nor priority counts. Above min: pods of its own namespace of lower priority, whatever their label;
    and, while its quota stays within min and guaranteed over-quota, pods over quota whose quota is beyond its own.
    Of several that wait in one quota and may preempt the same, the first shows the numbers.
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
    """Whether max or the sum of min would refuse the request even with all its victims gone."""
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
