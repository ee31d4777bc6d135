"""Request of a pod as a whole, by the scheduler's rules for init containers, sidecars, pod-level requests and overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpureport.collect.state.fields import Object, mapping, objects
from gpureport.values.quantity import base_units, nano_units

Requests = dict[str, int]
"""Billionths of the base unit by resource."""


def is_sidecar(init_container: Object) -> bool:
    """An init container that keeps running beside the pod's containers."""
    return init_container.get("restartPolicy") == "Always"


def effective_requests(spec: Object) -> dict[str, float | None]:
    """The pod's request in base units.

    All containers and sidecars run at once; an init container runs alone, beside the sidecars started before it. The
    larger of the two counts, a request of the pod itself replaces it, and overhead comes on top.
    """
    running: Requests = {}
    for container in objects(spec.get("containers")):
        _add(running, requested(container))
    if spec.keys() & _RARE:
        _reckon_the_rest(spec, running)
    return {name: base_units(nano) for name, nano in running.items()}


_RARE = frozenset({"initContainers", "resources", "overhead"})


def _reckon_the_rest(spec: Object, running: Requests) -> None:
    """Rare parts of a pod's request, added to the sum of the containers."""
    sidecars: Requests = {}
    largest_step: Requests = {}
    for container in objects(spec.get("initContainers")):
        step = requested(container)
        if is_sidecar(container):
            _add(running, step)
            _add(sidecars, step)
            step = sidecars
        else:
            _add(step, sidecars)
        _raise(largest_step, step)
    _raise(running, largest_step)
    running |= requested(spec)
    _add(running, _nano(spec.get("overhead")))


def requested(container: Object) -> Requests:
    """A container's (or the pod's own) requests; a limit without a request is one."""
    resources = mapping(container.get("resources"))
    if not resources.get("limits"):
        return _nano(resources.get("requests"))
    return _nano(resources["limits"]) | _nano(resources.get("requests"))


def _nano(quantities: Any) -> Requests:
    found = ((name, nano_units(written)) for name, written in mapping(quantities).items())
    return {name: nano for name, nano in found if nano is not None}


def _add(total: Requests, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise(total: Requests, other: Mapping[str, int]) -> None:
    for name, nano in other.items():
        total[name] = max(total.get(name, 0), nano)
