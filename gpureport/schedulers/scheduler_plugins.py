"""scheduler-plugins' ElasticQuota, the origin of nos and Koordinator quotas: min and max, first-come borrowing.

Source: scheduler-plugins, plugin capacityscheduling (2026-08). It has no label, no fair share and no gpu-memory.
The policies of this plugin and of nos (12e0a72) replay admissions and preemptions pod by pod, one resource at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpureport.schedulers.model import Exposure, Pod, Quota
from gpureport.schedulers.nos import Units, Used, base, quota_of, total, units
from gpureport.schedulers.pods import Policy, Request, Situation

WITHIN_MIN = "within min"
SAME_NAMESPACE = "same namespace"
_ALWAYS = ("cpu", "memory", "ephemeral-storage")


def over_min(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int]) -> tuple[str, ...]:
    """Return resources requested beyond min; a resource that min does not name has a min of 0."""
    return tuple(name for name in _compared(request) if request.get(name, 0) + used.get(name, 0) > bound.get(name, 0))


def over_max(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int] | None) -> tuple[str, ...]:
    """Return resources requested beyond max; an unnamed cpu, memory or ephemeral-storage has a max of 0, others no limit."""
    if bound is None:
        return ()
    named = [name for name in _compared(request) if name in _ALWAYS or name in bound]
    return tuple(name for name in named if request.get(name, 0) + used.get(name, 0) > bound.get(name, 0))


def _compared(request: Mapping[str, int]) -> list[str]:
    return list(dict.fromkeys((*_ALWAYS, *sorted(request))))


def _whole(amounts: Mapping[str, float]) -> Units:
    return {resource: units(resource, amount) for resource, amount in amounts.items()}


def _minimum(quota: Quota) -> Units:
    return _whole({name: terms.guaranteed for name, terms in quota.terms.items() if terms.guaranteed is not None})


def _maximum(quota: Quota) -> Units | None:
    return _whole({name: terms.cap for name, terms in quota.terms.items() if terms.cap is not None}) or None


def rejections(pod: Pod, held: Sequence[Used]) -> tuple[str, ...]:
    """Return reasons to reject the pod in the current state: ``max``, ``sum of min``; () where it is not rejected."""
    own = quota_of(pod, held)
    if own is None:
        return ()
    request = _whole(pod.requests)
    all_used, all_minimum = total(_whole(each.amounts) for each in held), total(_minimum(each.quota) for each in held)
    return (
        *(("max",) if over_max(_whole(own.amounts), request, _maximum(own.quota)) else ()),
        *(("sum of min",) if over_min(all_used, request, all_minimum) else ()),
    )


def exposures(waiting: Iterable[Pod], held: Sequence[Used], pods: Sequence[Pod]) -> Iterator[Exposure]:
    """Yield pods that waiting pods may preempt: within min, pods of quotas above min; else lower-priority pods of its own.

    If several waiting pods of one quota may preempt the same pods, only the first is reported.
    """
    above = {each.quota.name: _evidence(each, found[0]) for each in held if (found := _above_min(each))}
    reported = set()
    for new in waiting:
        own = quota_of(new, held)
        if own is None:
            continue
        is_over_min = bool(over_min(_whole(own.amounts), _whole(new.requests), _minimum(own.quota)))
        claim = (new.quota, new.namespace, new.priority, is_over_min)
        if claim not in reported:
            reported.add(claim)
            yield from _less_important(new, pods) if is_over_min else _of_quotas(above, new, pods)


def _less_important(new: Pod, pods: Sequence[Pod]) -> Iterator[Exposure]:
    for pod in pods:
        if pod.namespace == new.namespace and pod.priority < new.priority:
            yield Exposure(pod.uid, new.quota, SAME_NAMESPACE, f"priority {pod.priority} < {new.priority}")


def _of_quotas(above: Mapping[str, str], new: Pod, pods: Sequence[Pod]) -> Iterator[Exposure]:
    for pod in pods:
        if pod.namespace != new.namespace and pod.quota in above:
            yield Exposure(pod.uid, new.quota, WITHIN_MIN, above[pod.quota])


def _above_min(each: Used) -> tuple[str, ...]:
    return over_min({}, _whole(each.amounts), _minimum(each.quota))


def _evidence(above: Used, resource: str) -> str:
    bound = _minimum(above.quota).get(resource, 0)
    return f"{resource} {base(resource, units(resource, above.amounts[resource])):g} > {base(resource, bound):g}"


_TOLERANCE = 1e-9


class ElasticPolicy(Policy):
    """scheduler-plugins: within its min, a quota preempts pods of quotas above min; else its own pods of lower priority."""

    def admits(self, now: Situation, request: Request) -> bool:
        """Return whether the request fits and all quotas together stay within the sum of min."""
        return now.fits(request) and now.total + request.amount <= sum(map(now.minimum, now.quotas)) + _TOLERANCE

    def victims(self, now: Situation, request: Request) -> Sequence[Request]:
        """Return pods of others if the request is within its claim, and lower-priority pods of its own quota if above min."""
        own = [] if self._is_within_min(now, request) else now.less_important(request)
        return [*own, *(each for each in self._exposed(now) if each.quota != request.quota)]

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Return whether the victim is of the same quota, or its quota still uses more than it may keep."""
        if victim.quota == request.quota:
            return True
        bound = now.minimum(victim.quota) + (0.0 if self._is_within_min(now, request) else self._over(now, victim.quota))
        return self._may_claim(now, request) and now.used[victim.quota] > bound + _TOLERANCE

    def _is_within_min(self, now: Situation, request: Request) -> bool:
        return now.is_within(request.quota, request.amount, now.minimum(request.quota))

    def _may_claim(self, now: Situation, request: Request) -> bool:
        return now.is_within(request.quota, request.amount, now.minimum(request.quota) + self._over(now, request.quota))

    def _over(self, now: Situation, quota: str) -> float:
        """Return the guaranteed amount beyond min."""
        return 0.0

    def _exposed(self, now: Situation) -> list[Request]:
        """Return pods that another quota may preempt."""
        return now.least_important()


class NosPolicy(ElasticPolicy):
    """nos: unused min is guaranteed to others in proportion, and only pods over quota are preempted."""

    def _over(self, now: Situation, quota: str) -> float:
        total = sum(map(now.minimum, now.quotas))
        unused = sum(max(0.0, now.minimum(name) - now.used[name]) for name in now.quotas)
        return math.floor(now.minimum(quota) / total * unused) if total else 0.0

    def _exposed(self, now: Situation) -> list[Request]:
        """Return pods over quota: requests of the pod and of pods counted before it exceed min."""
        used: dict[str, float] = defaultdict(float)
        over = set()
        for each in sorted(now.running.values(), key=_counted):
            used[each.quota] += each.amount
            if used[each.quota] > now.minimum(each.quota) + _TOLERANCE:
                over.add(each.uid)
        return [each for each in now.least_important() if each.uid in over]


def _counted(pod: Request) -> tuple[int, int, float, str]:
    return pod.created_ms, pod.priority, pod.amount, pod.uid
