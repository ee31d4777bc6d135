"""Kubernetes' ResourceQuota: a cap on what a namespace asks for, waiting pods too; no guarantee, no borrowing, no fair share.

Source: Kubernetes 1.36, the quota admission's evaluators of pods and of resource claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

DEVICES_OF_ALL = 32
"""Charged for a request of all devices, whatever their number: the most that a claim can be given."""
_CLASS_KEY = ".deviceclass.resource.k8s.io/devices"


def effective_caps(hard: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """What several quotas of one namespace allow together: of each resource the lowest; their ``used`` never adds up."""
    caps: dict[str, float] = {}
    for each in hard:
        for resource, amount in each.items():
            caps[resource] = min(amount, caps.get(resource, amount))
    return caps


def refused(used: Mapping[str, float], request: Mapping[str, float], hard: Mapping[str, float]) -> tuple[str, ...]:
    """Resources of which the request would pass the cap; one that the request does not name is not asked."""
    return tuple(name for name in sorted(request) if name in hard and used.get(name, 0) + request[name] > hard[name])


@dataclass(frozen=True)
class DeviceAsk:
    """Devices of one class that a claim asks for."""

    device_class: str
    count: int | None
    """None for all of them."""


def claim_charge(requests: Iterable[Sequence[DeviceAsk]]) -> dict[str, int]:
    """Devices charged to a namespace for a claim while it exists, allocated or not, by quota key.

    Each request is its alternatives in order, one where there is no choice. The evaluator means to charge the largest
    alternative of each class, but adds where a later one is larger: 1 then 2 is 3, 2 then 1 is 2.
    """
    charged: dict[str, int] = {}
    for alternatives in requests:
        for name, count in _largest(alternatives).items():
            charged[name + _CLASS_KEY] = charged.get(name + _CLASS_KEY, 0) + count
    return charged


def _largest(alternatives: Sequence[DeviceAsk]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in alternatives:
        count = DEVICES_OF_ALL if each.count is None else each.count
        if count > found.get(each.device_class, 0):
            found[each.device_class] = found.get(each.device_class, 0) + count
    return found
