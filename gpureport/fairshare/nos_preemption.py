"""Who may preempt whom under nos: a pod that waits, the pods that it may take the place of, and the numbers.

Source: nos' scheduler plugin (12e0a72, 2024-04). It takes victims of one node, spares what it can, and counts pods that are
nominated to a node; none of these is known here, so what stands here is who is exposed, not who will go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpureport.fairshare.model import Exposure, Pod
from gpureport.fairshare.nos import (
    ALWAYS_COMPARED,
    Units,
    Used,
    as_units,
    base,
    exceeds,
    guaranteed_over_quota,
    minimum,
    quota_of,
    rejections,
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

    @property
    def bound(self) -> Units:
        """What it may have: min and guaranteed over-quota."""
        return total([self.minimum, self.guaranteed])


@dataclass(frozen=True)
class Situation:
    """One instant: what each quota uses, the pods that hold it, and which of those bear the label over-quota."""

    held: Sequence[Used]
    pods: Sequence[Pod]
    over_quota_uids: frozenset[str]
    counts_composites_as_original: bool = False

    @cached_property
    def sides(self) -> Mapping[str, Side]:
        """Each quota's side, by its name."""
        parts = guaranteed_over_quota(self.held, self.counts_composites_as_original)
        return {each.quota.name: Side(as_units(each.amounts), minimum(each.quota), parts[each.quota.name]) for each in self.held}


def exposures(waiting: Pod, situation: Situation) -> list[Exposure]:
    """Pods that the waiting one may preempt, each under which condition and with which numbers; none where none would help.

    Within min (its quota would use no more than min): pods over quota of other namespaces whose quota uses more than min;
    neither fair share nor priority is asked. Above min: pods of its own namespace of lower priority, whatever their label;
    and, while its quota stays within min and guaranteed over-quota, pods over quota whose quota is beyond its own.
    """
    own = quota_of(waiting, situation.held)
    if own is None:
        return []
    found = list(_candidates(waiting, own, situation))
    freed = {each.pod_uid for each in found}
    return found if found and not _is_rejected_without(freed, waiting, situation) else []


def _candidates(waiting: Pod, own: Used, situation: Situation) -> Iterator[Exposure]:
    request = as_units(waiting.requests)
    sides = situation.sides
    side = sides[own.quota.name]
    is_over_min = bool(exceeds(side.used, request, side.minimum))
    for pod in situation.pods:
        if pod.quota not in sides or pod.uid == waiting.uid:
            continue
        if pod.namespace == waiting.namespace:
            if is_over_min and pod.priority < waiting.priority:
                yield Exposure(pod.uid, own.quota.name, SAME_NAMESPACE, f"priority {pod.priority} < {waiting.priority}")
        elif pod.uid in situation.over_quota_uids:
            yield from _between_quotas(pod, own.quota.name, request, is_over_min, side, sides[pod.quota])


def _between_quotas(victim: Pod, by_quota: str, request: Units, is_over_min: bool, own: Side, other: Side) -> Iterator[Exposure]:
    if not is_over_min:
        for resource in exceeds(other.used, {}, other.minimum)[:1]:
            evidence = f"{_fits(own.used, request, resource, own.minimum)} and {_more(other.used, resource, other.minimum)}"
            yield Exposure(victim.uid, by_quota, WITHIN_MIN, evidence)
    elif not exceeds(own.used, request, own.bound):
        for resource in exceeds(other.used, {}, other.bound)[:1]:
            evidence = f"{_fits(own.used, request, resource, own.minimum, own.guaranteed)} and " + _more(
                other.used, resource, other.minimum, other.guaranteed
            )
            yield Exposure(victim.uid, by_quota, FAIR_SHARE, evidence)


def _is_rejected_without(freed: set[str], waiting: Pod, situation: Situation) -> bool:
    """Whether max or the sum of min would refuse the pod even with all its victims gone."""
    gone: dict[str, Units] = {}
    for pod in situation.pods:
        if pod.uid in freed:
            gone[pod.quota] = total([gone.get(pod.quota, {}), as_units(pod.requests)])
    rest = [_without(each, gone.get(each.quota.name, {})) for each in situation.held]
    return bool(rejections(waiting, rest, situation.counts_composites_as_original))


def _without(each: Used, gone: Units) -> Used:
    left = {name: amount - base(name, gone.get(name, 0)) for name, amount in each.amounts.items()}
    return replace(each, amounts=left)


def _fits(used: Units, request: Units, resource: str, *bounds: Mapping[str, int]) -> str:
    if resource not in {*ALWAYS_COMPARED, *total(bounds)}:
        return f"{resource} not limited"
    left = f"{_shown(used, resource)} + {_shown(request, resource)}"
    return f"{resource} {left} <= {' + '.join(_shown(bound, resource) for bound in bounds)}"


def _more(used: Units, resource: str, *bounds: Mapping[str, int]) -> str:
    return f"{_shown(used, resource)} > {' + '.join(_shown(bound, resource) for bound in bounds)}"


def _shown(amounts: Mapping[str, int], resource: str) -> str:
    return f"{base(resource, amounts.get(resource, 0)):g}"
