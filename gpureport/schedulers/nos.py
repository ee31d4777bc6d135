"""nos elastic quotas: what is available over quota, how much of it each quota is guaranteed, and which pods are admitted.

Source: nos' scheduler plugin (12e0a72, 2024-04), and where its documents say otherwise, the code. Amounts are compared as
the scheduler holds them: whole units, rounded up, of cpu thousandths. Labels in-quota and over-quota are the operator's of the
same commit; its documents do not say that the lower priority comes first.
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
GPU_MEMORY = "nos.nebuly.com/gpu-memory"  # GB; requests count, never limits, as in the calculator of scheduler and operator
DEFAULT_GPU_MEMORY_GB = 32
"""Setting of the installation chart; scheduler and operator have separate settings that must be equal."""

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")
_SIZE = re.compile(r"(\d+)gb")


def mig_memory_gb(resource: str) -> int:
    """GB that one unit of a MIG resource counts; 0 for a name that the original does not understand.

    The name is searched, not matched as a whole: ``mig-1g.5gb.me`` is 5. Two sizes in one name are an error that the original
    swallows, so they count 0; a compute instance (``mig-1c.2g.10gb``) is no MIG resource to it.
    """
    sizes = _SIZE.findall(resource) if _MIG.search(resource) else []
    return int(sizes[0]) if len(sizes) == 1 else 0


def gpu_memory_gb(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> float:
    """GB of gpu-memory that the original computes from a pod's requests."""
    return sum(
        amount * (gb_per_gpu if resource == GPU else mig_memory_gb(resource)) for resource, amount in sorted(requests.items())
    )


def uncounted(requests: Mapping[str, float]) -> tuple[str, ...]:
    """GPU resources of the request that count 0 GB although they hold memory of a GPU.

    Slices of nos' own MPS partitioning (``gpu-10gb``), time-sliced replicas (``gpu.shared``) and MIG names it does not
    understand. Devices of resource claims are no requests and are not here.
    """
    return tuple(
        resource
        for resource, amount in sorted(requests.items())
        if amount > 0 and resource.startswith("nvidia.com/") and resource != GPU and not mig_memory_gb(resource)
    )


def with_gpu_memory(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> dict[str, float]:
    """The request with what nos adds to it; a pod without GPUs has no gpu-memory."""
    memory = gpu_memory_gb(requests, gb_per_gpu)
    return {**requests, GPU_MEMORY: memory} if memory else dict(requests)


ALWAYS_COMPARED = ("cpu", "memory")
"""Compared even where a quota does not name them, and then as 0."""
NEVER_COMPARED = ("ephemeral-storage", "pods")

Units = dict[str, int]
"""By resource, in the scheduler's units."""


@dataclass(frozen=True)
class Used:
    """A quota and what is counted as used of it, by resource in base units.

    The scheduler counts pods that are bound, from when it has known both; the operator's ``status.used`` counts those Running.
    """

    quota: Quota
    amounts: Mapping[str, float]


@lru_cache(maxsize=10_000)  # a day requests few amounts, and for each of them at every instant
def units(resource: str, amount: float) -> int:
    """The amount as the scheduler holds it."""
    return math.ceil(round(amount * (1000 if resource == "cpu" else 1), 6))


def base(resource: str, whole: float) -> float:
    """Scheduler's units back in base units."""
    return whole / 1000 if resource == "cpu" else float(whole)


def as_units(amounts: Mapping[str, float]) -> Units:
    """Amounts that the scheduler compares, in its units."""
    return {resource: units(resource, amount) for resource, amount in amounts.items() if resource not in NEVER_COMPARED}


def minimum(quota: Quota) -> Units:
    """Its spec.min."""
    return as_units({name: terms.guaranteed for name, terms in quota.terms.items() if terms.guaranteed is not None})


def maximum(quota: Quota) -> Units | None:
    """Its spec.max; None where it has none, which is no limit at all."""
    caps = {name: terms.cap for name, terms in quota.terms.items() if terms.cap is not None}
    return as_units(caps) if caps else None


def exceeds(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int]) -> tuple[str, ...]:
    """Resources of which used and request together are more than the bound.

    cpu and memory are compared always, as 0 where the bound does not name them: a quota of GPUs alone admits no pod that requests
    cpu. Others are compared only where the bound names them.
    """
    compared = dict.fromkeys((*ALWAYS_COMPARED, *sorted(bound)))
    return tuple(name for name in compared if used.get(name, 0) + request.get(name, 0) > bound.get(name, 0))


def fits(used: Mapping[str, int], request: Mapping[str, int], bound: Mapping[str, int]) -> bool:
    """Whether used and request together ``exceeds`` nothing of the bound."""
    for name, most in bound.items():
        if used.get(name, 0) + request.get(name, 0) > most:
            return False
    return not any(used.get(name, 0) + request.get(name, 0) > 0 for name in ALWAYS_COMPARED if name not in bound)


def total(amounts: Iterable[Mapping[str, int]]) -> Units:
    """Their sum, resource by resource."""
    found: Units = {}
    for each in amounts:
        for resource, amount in each.items():
            found[resource] = found.get(resource, 0) + amount
    return found


def available_over_quota(held: Sequence[Used]) -> Units:
    """Unused min of quotas, Σ max(0, min − used); also what others have borrowed of it already.

    Sums count each quota once. The original keeps quotas by namespace and counts a composite one once for each of its
    namespaces, which makes its sums too large.
    """
    return total(
        {name: max(0, limit - units(name, each.amounts.get(name, 0))) for name, limit in minimum(each.quota).items()}
        for each in held
    )


def share_ratios(quota: Quota, sums: Mapping[str, int]) -> dict[str, float]:
    """Its min over the sum of all min, by resource; 0 where that sum is 0."""
    return {name: limit / sums[name] if sums[name] else 0.0 for name, limit in minimum(quota).items()}


def sum_of_min(held: Sequence[Used]) -> Units:
    """All min together, by resource."""
    return total(minimum(each.quota) for each in held)


def guaranteed_over_quota(held: Sequence[Used]) -> dict[str, Units]:
    """The part of each quota of what is available over quota, floor(min / Σmin × available), by its name and resource.

    What rounding leaves is in no part. The product is one of doubles as in the original: 29 of 100 of 100 is 28.
    """
    available, sums = available_over_quota(held), sum_of_min(held)
    parts = {}
    for each in held:
        ratios = share_ratios(each.quota, sums)
        parts[each.quota.name] = {name: math.floor(amount * ratios.get(name, 0.0)) for name, amount in available.items()}
    return parts


def rejections(pod: Pod, held: Sequence[Used]) -> tuple[str, ...]:
    """Reasons why the scheduler would reject the pod as things are, before it searches for victims; () where it would not.

    ``max`` (its quota's), ``sum of min``: all quotas together never use more than all min, so no quota borrows more than others
    leave unused, though GPUs may be free. A pod that no quota governs is never rejected.
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
    """The quota that governs the pod, and what is used of it."""
    return next((each for each in held if each.quota.name == pod.quota), None)


def shares(resource: str, holdings: Sequence[Holding]) -> dict[str, Share]:
    """Amount of each quota of the resource that others may not take back: min and its guaranteed over-quota."""
    held = [Used(each.quota, {resource: each.delivered}) for each in holdings]
    parts = guaranteed_over_quota(held)
    return {
        each.quota.name: Share(base(resource, minimum(each.quota).get(resource, 0) + parts[each.quota.name].get(resource, 0)))
        for each in held
    }


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

    nos announced that the order could be chosen and never made it; this is for a what-if of another. Two requests
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
