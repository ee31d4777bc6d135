"""nos elastic quotas: over-quota amounts, guaranteed parts of each quota, and admission of pods.

Source: nos' scheduler plugin (12e0a72, 2024-04); where its documentation differs, the code. Amounts are compared in the
scheduler's units: whole numbers, rounded up; thousandths for cpu. Labels in-quota and over-quota follow the operator of
the same commit; its documentation does not mention that lower priority comes first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, lru_cache

from gpureport.schedulers.model import Holding, Pod, Quota, Share
from gpureport.values.errors import UsageError

GPU = "nvidia.com/gpu"
GPU_MEMORY = "nos.nebuly.com/gpu-memory"  # GB; only requests count, limits do not, as in the scheduler and the operator
DEFAULT_GPU_MEMORY_GB = 32
"""Default of the installation chart; scheduler and operator have separate settings that must be equal."""

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")
_SIZE = re.compile(r"(\d+)gb")


def mig_memory_gb(resource: str) -> int:
    """Return GB of one unit of a MIG resource; 0 for a name that nos does not recognize.

    The pattern may match part of the name: ``mig-1g.5gb.me`` is 5. Two sizes in one name are an error that nos ignores, so
    they count as 0; nos does not recognize compute instances (``mig-1c.2g.10gb``) as MIG resources.
    """
    sizes = _SIZE.findall(resource) if _MIG.search(resource) else []
    return int(sizes[0]) if len(sizes) == 1 else 0


def gpu_memory_gb(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> float:
    """Return GB of gpu-memory that nos computes from a pod's requests."""
    return sum(
        amount * (gb_per_gpu if resource == GPU else mig_memory_gb(resource)) for resource, amount in sorted(requests.items())
    )


def uncounted(requests: Mapping[str, float]) -> tuple[str, ...]:
    """Return requested GPU resources that count as 0 GB although they use GPU memory.

    These are slices of nos' MPS partitioning (``gpu-10gb``), time-sliced replicas (``gpu.shared``) and MIG names that nos
    does not recognize. Devices of resource claims are excluded, because they are not requests.
    """
    return tuple(
        resource
        for resource, amount in sorted(requests.items())
        if amount > 0 and resource.startswith("nvidia.com/") and resource != GPU and not mig_memory_gb(resource)
    )


def with_gpu_memory(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> dict[str, float]:
    """Return the requests including gpu-memory as nos adds it; a pod without GPUs has no gpu-memory."""
    memory = gpu_memory_gb(requests, gb_per_gpu)
    return {**requests, GPU_MEMORY: memory} if memory else dict(requests)


ALWAYS_COMPARED = ("cpu", "memory")
"""Compared even where a quota does not name them; the bound is then 0."""
NEVER_COMPARED = ("ephemeral-storage", "pods")

Units = dict[str, int]
"""By resource, in the scheduler's units."""


@dataclass(frozen=True)
class Used:
    """A quota and its used amounts, by resource in base units.

    The scheduler counts bound pods, once it knows both pod and quota; the operator's ``status.used`` counts Running pods.
    """

    quota: Quota
    amounts: Mapping[str, float]


@lru_cache(maxsize=10_000)  # a day has few distinct amounts, and each recurs at every instant
def units(resource: str, amount: float) -> int:
    """Return the amount in the scheduler's units, rounded up."""
    return math.ceil(round(amount * (1000 if resource == "cpu" else 1), 6))


def base(resource: str, whole: float) -> float:
    """Convert scheduler's units to base units."""
    return whole / 1000 if resource == "cpu" else float(whole)


def as_units(amounts: Mapping[str, float]) -> Units:
    """Return the amounts that the scheduler compares, in its units."""
    return {resource: units(resource, amount) for resource, amount in amounts.items() if resource not in NEVER_COMPARED}


def minimum(quota: Quota) -> Units:
    """Return spec.min in the scheduler's units."""
    return as_units({name: terms.guaranteed for name, terms in quota.terms.items() if terms.guaranteed is not None})


def maximum(quota: Quota) -> Units | None:
    """Return spec.max in the scheduler's units; None where it is absent, which means no limit."""
    caps = {name: terms.cap for name, terms in quota.terms.items() if terms.cap is not None}
    return as_units(caps) if caps else None


def exceeds(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int]) -> tuple[str, ...]:
    """Return resources whose used amount plus request exceeds the bound.

    cpu and memory are always compared, with 0 where the bound does not name them: a quota of GPUs alone admits no pod
    that requests cpu. Other resources are compared only where the bound names them.
    """
    compared = dict.fromkeys((*ALWAYS_COMPARED, *sorted(bound)))
    return tuple(name for name in compared if used.get(name, 0) + request.get(name, 0) > bound.get(name, 0))


def fits(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int]) -> bool:
    """Return whether ``exceeds`` finds no resource."""
    for name, most in bound.items():
        if used.get(name, 0) + request.get(name, 0) > most:
            return False
    return not any(used.get(name, 0) + request.get(name, 0) > 0 for name in ALWAYS_COMPARED if name not in bound)


def total(amounts: Iterable[Mapping[str, int]]) -> Units:
    """Return the sum by resource."""
    found: Units = {}
    for each in amounts:
        for resource, amount in each.items():
            found[resource] = found.get(resource, 0) + amount
    return found


def available_over_quota(held: Sequence[Used]) -> Units:
    """Return the unused min of quotas, Σ max(0, min − used); it includes amounts that others already borrow.

    Sums count each quota once. nos keeps quotas by namespace and counts a composite quota once per namespace, so its own
    sums are too large.
    """
    return total(
        {name: max(0, limit - units(name, each.amounts.get(name, 0))) for name, limit in minimum(each.quota).items()}
        for each in held
    )


def share_ratios(quota: Quota, sums: Mapping[str, int]) -> dict[str, float]:
    """Return min over the sum of all min, by resource; 0 where that sum is 0."""
    return {name: limit / sums[name] if sums[name] else 0.0 for name, limit in minimum(quota).items()}


def sum_of_min(held: Sequence[Used]) -> Units:
    """Return the sum of all min, by resource."""
    return total(minimum(each.quota) for each in held)


def guaranteed_over_quota(held: Sequence[Used]) -> dict[str, Units]:
    """Return each quota's part of the available over-quota, floor(min / Σmin × available), by quota name and resource.

    The remainder of rounding is not assigned. The product uses doubles as in nos: 29 of 100 of 100 is 28.
    """
    available, sums = available_over_quota(held), sum_of_min(held)
    parts = {}
    for each in held:
        ratios = share_ratios(each.quota, sums)
        parts[each.quota.name] = {name: math.floor(amount * ratios.get(name, 0.0)) for name, amount in available.items()}
    return parts


def rejections(pod: Pod, held: Sequence[Used]) -> tuple[str, ...]:
    """Return reasons to reject the pod in the current state, before a search for victims; () where it is not rejected.

    ``max``: of its own quota. ``sum of min``: total use may not exceed the sum of all min. Borrowing is thus limited to
    the unused min of others, even if GPUs are free. A pod without a quota is never rejected.
    """
    own = quota_of(pod, held)
    if own is None:
        return ()
    request, limit = as_units(pod.requests), maximum(own.quota)
    all_used = total(as_units(each.amounts) for each in held)
    return (
        *(("max",) if limit is not None and exceeds(as_units(own.amounts), request, limit) else ()),
        *(("sum of min",) if exceeds(all_used, request, sum_of_min(held)) else ()),
    )


def quota_of(pod: Pod, held: Iterable[Used]) -> Used | None:
    """Return the quota of the pod with its used amounts; None where the pod has no quota."""
    return next((each for each in held if each.quota.name == pod.quota), None)


def shares(resource: str, holdings: Sequence[Holding]) -> dict[str, Share]:
    """Return each quota's amount that others may not reclaim: min plus guaranteed over-quota."""
    held = [Used(each.quota, {resource: each.delivered}) for each in holdings]
    parts = guaranteed_over_quota(held)
    return {
        each.quota.name: Share(base(resource, minimum(each.quota).get(resource, 0) + parts[each.quota.name].get(resource, 0)))
        for each in held
    }


IN_QUOTA = "in-quota"
OVER_QUOTA = "over-quota"
ORDER = ("creation", "priority", "request", "name")
"""Order in which pods are counted: older, lower priority, smaller request, name."""

_NANO = 10**9


@dataclass(frozen=True)
class Labelled:
    """A running pod and its label by the rules."""

    pod: Pod
    label: str


def nano(amount: float) -> int:
    """Return the amount in whole billionths: sums are exact, as with the quantities of nos."""
    whole = int(amount)
    return whole * _NANO + round((amount - whole) * _NANO)


def labelled(quota: Quota, pods: Iterable[Pod], order: Sequence[str] = ORDER) -> list[Labelled]:
    """Return the quota's running pods in the order of counting, each with its label.

    Requests are summed pod by pod; a pod is in-quota while the sum is within min for every resource. The sum never
    decreases. All pods after the first over-quota pod are therefore over quota, even small ones or those without a request.
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
    """Return running pods in the order of counting; ``order`` names the criteria, and ``-`` before one reverses it.

    nos announced a configurable order but did not implement it; this argument allows a what-if. If neither of two requests
    is smaller, the order in nos is undefined; here the next criteria decide.
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
    """Return whether the first requests at most the amounts of the second, for resources in both."""
    return all(nano(first[resource]) <= nano(amount) for resource, amount in second.items() if resource in first)


_CRITERIA: Mapping[str, Callable[[Pod, Pod], int]] = {
    "creation": lambda first, second: _difference(first.created_at_ms, second.created_at_ms),
    "priority": lambda first, second: _difference(first.priority, second.priority),
    "request": _smaller_request,
    "name": lambda first, second: _difference(first.name, second.name),
}
