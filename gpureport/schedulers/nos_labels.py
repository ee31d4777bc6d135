"""Labels in-quota and over-quota of running pods under nos (``nos.nebuly.com/capacity``).

Source: nos' operator (12e0a72, 2024-04). Its documents do not say that the lower priority comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from gpureport.schedulers.model import Pod, Quota
from gpureport.values.errors import UsageError

IN_QUOTA = "in-quota"
OVER_QUOTA = "over-quota"
ORDER = ("creation", "priority", "request", "name")
"""The order in which pods come to be counted: older, of lower priority, of smaller request, by name."""

_NANO = 10**9


@dataclass(frozen=True)
class Labelled:
    """A running pod, and the label that it has by the rules."""

    pod: Pod
    label: str


def nano(amount: float) -> int:
    """Billionths of the unit, whole: sums of them are exact, as the original's quantities are."""
    whole = int(amount)
    return whole * _NANO + round((amount - whole) * _NANO)


def labelled(quota: Quota, pods: Iterable[Pod], order: Sequence[str] = ORDER) -> list[Labelled]:
    """The quota's running pods in the order in which they are counted, each with its label.

    Requests add up pod by pod; a pod is in-quota while the sum is within every resource of min. The sum never falls, so
    after the first pod over quota all later ones are, also those that would have fitted and those that request nothing of it.
    """
    minimum = {name: nano(terms.guaranteed) for name, terms in quota.terms.items() if terms.guaranteed is not None}
    used = dict.fromkeys(minimum, 0)
    counted = []
    for pod in in_order(pods, order):
        for resource in minimum:
            used[resource] += nano(pod.requests.get(resource, 0))
        fits = all(used[resource] <= limit for resource, limit in minimum.items())
        counted.append(Labelled(pod, IN_QUOTA if fits else OVER_QUOTA))
    return counted


def in_order(pods: Iterable[Pod], order: Sequence[str] = ORDER) -> list[Pod]:
    """Running pods in the order of counting; ``order`` names the criteria, with ``-`` before one for the reverse.

    nos announced that the order could be chosen and never made it; this is for asking what another would do. Two requests
    of which neither is smaller are left to the sort's chance by the original; here the next criteria decide.
    """
    criteria = [(_criterion(name.removeprefix("-")), -1 if name.startswith("-") else 1) for name in order]

    def compare(first: Pod, second: Pod) -> int:
        return next((sign * found for rule, sign in criteria if (found := rule(first, second))), 0)

    running = [pod for pod in pods if pod.is_running]
    return sorted(sorted(running, key=lambda pod: (pod.name, pod.namespace, pod.uid)), key=cmp_to_key(compare))


def _criterion(name: str) -> Callable[[Pod, Pod], int]:
    if name not in _CRITERIA:
        raise UsageError(f"{name!r} does not order pods; choose from {', '.join(ORDER)}, with '-' in front to reverse one")
    return _CRITERIA[name]


def _difference(first: float | str, second: float | str) -> int:
    return (first > second) - (first < second)  # type: ignore[operator]


def _smaller_request(first: Pod, second: Pod) -> int:
    fits, is_fitted = _is_within(first.requests, second.requests), _is_within(second.requests, first.requests)
    return is_fitted - fits


def _is_within(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    """Whether the first requests no more, of what both request."""
    return all(nano(first[resource]) <= nano(amount) for resource, amount in second.items() if resource in first)


_CRITERIA: Mapping[str, Callable[[Pod, Pod], int]] = {
    "creation": lambda first, second: _difference(first.created_at_ms, second.created_at_ms),
    "priority": lambda first, second: _difference(first.priority, second.priority),
    "request": _smaller_request,
    "name": lambda first, second: _difference(first.name, second.name),
}
