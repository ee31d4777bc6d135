"""Conversion of ResourceSlices, DeviceClasses and ResourceClaims (v1, v1beta2, v1beta1) to ``device…`` and ``claim…``.

While a driver updates its pool, slices of the old generation can still be listed. Their devices no longer exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpureport.collect.state.fields import Object, Row, instant, mapping, objects, only_node, pci_bus_id, taints, text, whole
from gpureport.values.quantity import amount, amounts

_TYPES = frozenset({"string", "version", "bool", "int", "strings", "versions", "bools", "ints"})
_PCI = ("pciBusID", "pcieBusID", "pciAddr", "pciAddress", "parentPciAddr")


@dataclass
class _Pool:
    """The newest generation of a driver's pool."""

    generation: int
    slice_count: int = 0
    announced_count: int | None = None
    rows: list[Row] = field(default_factory=list)


class Pools:
    """Collects slices in any order. The rows are the devices of each pool's newest generation."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], _Pool] = {}

    def add(self, resource_slice: Object) -> None:
        """Add a slice. One of an older generation changes nothing."""
        spec = mapping(resource_slice.get("spec"))
        reported = mapping(spec.get("pool"))
        generation = whole(reported.get("generation")) or 0
        key = text(spec.get("driver")), text(reported.get("name"))
        pool = self._pools.get(key)
        if pool is None or generation > pool.generation:
            pool = self._pools[key] = _Pool(generation)
        if generation == pool.generation:
            pool.slice_count += 1
            pool.announced_count = whole(reported.get("resourceSliceCount"))
            pool.rows += [_device_row(*key, spec, device) for device in objects(spec.get("devices"))]

    def rows(self) -> Iterator[Row]:
        """Yield every existing device, with the defects of its pool."""
        for pool in self._pools.values():
            names = Counter(row["device"] for row in pool.rows)
            of_pool = {"pool_generation": pool.generation, "is_pool_complete": pool.slice_count == pool.announced_count}
            for row in pool.rows:
                yield row | of_pool | {"is_name_unique": names[row["device"]] == 1}


def _device_row(driver: str, pool: str, spec: Object, device: Object) -> Row:
    payload = mapping(device.get("basic")) or device  # v1beta1 wraps it
    attributes = dict(_attributes(driver, mapping(payload.get("attributes"))))
    named = _by_id(attributes, driver)
    uuid, parent = named.get("uuid", ""), named.get("parentUUID", "")
    return {
        "driver": driver,
        "pool": pool,
        "device": text(device.get("name")),
        "node_name": _node(spec) or _node(payload),
        "device_type": named.get("type", ""),
        "uuid": uuid,
        "parent_uuid": parent,
        "device_uuid": parent or (uuid if not uuid.startswith("MIG-") else ""),
        "profile": named.get("profile") or named.get("partitionProfile", ""),
        "gpu_model": named.get("productName") or named.get("model", ""),
        "pci_bus_id": pci_bus_id(next((named[name] for name in _PCI if name in named), "")),
        "attributes": attributes,
        "capacities": {name: amount(mapping(each).get("value")) for name, each in mapping(payload.get("capacity")).items()},
        "consumed_counters": dict(_counters(payload)),
        "is_shareable": payload.get("allowMultipleAllocations") is True,
        "taints": taints(payload.get("taints")),
    }


def _node(spec: Object) -> str:
    return text(spec.get("nodeName")) or only_node(spec.get("nodeSelector"))


def _attributes(driver: str, attributes: Object) -> Iterator[tuple[str, str]]:
    """Yield attributes by full name. A name without a domain is in the driver's domain."""
    for name, value in attributes.items():
        for kind, found in mapping(value).items():
            if kind in _TYPES and found is not None:
                yield (name if "/" in name else f"{driver}/{name}"), found if isinstance(found, str) else _as_text(found)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_id(attributes: Mapping[str, str], driver: str) -> dict[str, str]:
    """Return attributes without their domains. Of equal names, the driver's own is used, else the first."""
    found: dict[str, str] = {}
    own = f"{driver}/"
    for name, value in attributes.items():
        if name.startswith(own):
            found[name.removeprefix(own)] = value
        else:
            found.setdefault(name.rpartition("/")[2], value)
    return found


def _counters(payload: Object) -> Iterator[tuple[str, float | None]]:
    for each in objects(payload.get("consumesCounters")):
        for name, counter in mapping(each.get("counters")).items():
            yield f"{text(each.get('counterSet'))}/{name}", amount(mapping(counter).get("value"))


def device_class_row(device_class: Object) -> Row:
    """Return the row of a device class."""
    metadata, spec = mapping(device_class.get("metadata")), mapping(device_class.get("spec"))
    return {
        "device_class": text(metadata.get("name")),
        "device_class_uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "extended_resource": text(spec.get("extendedResourceName")),
        "selectors": [text(mapping(each.get("cel")).get("expression")) for each in objects(spec.get("selectors"))],
    }


_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_EXTENDED = "resource.kubernetes.io/extended-resource-claim"


def _identity(claim: Object) -> Row:
    metadata = mapping(claim.get("metadata"))
    return {
        "namespace": text(metadata.get("namespace")),
        "claim": text(metadata.get("name")),
        "claim_uid": text(metadata.get("uid")),
    }


def _allocation(claim: Object) -> Object:
    return mapping(mapping(claim.get("status")).get("allocation"))


def claim_row(claim: Object) -> Row:
    """Return the row of a claim: its requests, owner and allocation."""
    metadata = mapping(claim.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    owner = next(iter(objects(metadata.get("ownerReferences"))), {})
    allocation = _allocation(claim)
    return {
        **_identity(claim),
        "created_at": instant(metadata.get("creationTimestamp")),
        "deletion_at": instant(metadata.get("deletionTimestamp")),
        "owner_kind": text(owner.get("kind")),
        "owner_name": text(owner.get("name")),
        "owner_uid": text(owner.get("uid")),
        "pod_claim": text(annotations.get(_POD_CLAIM)),
        "is_extended_resource": annotations.get(_EXTENDED) == "true",
        "requests": list(_requests(mapping(mapping(claim.get("spec")).get("devices")))),
        "is_allocated": bool(allocation),
        "allocated_at": instant(allocation.get("allocationTimestamp")),
        "node_name": only_node(allocation.get("nodeSelector")),
    }


def _requests(devices: Object) -> Iterator[Row]:
    for request in objects(devices.get("requests")):
        name = text(request.get("name"))
        if alternatives := objects(request.get("firstAvailable")):
            yield from (_request(name, text(each.get("name")), each) for each in alternatives)
        else:
            yield _request(name, "", mapping(request.get("exactly")) or request)  # v1beta1 does not wrap it


def _request(name: str, subrequest: str, request: Object) -> Row:
    mode = text(request.get("allocationMode")) or "ExactCount"
    count = whole(request.get("count"))
    return {
        "request": name,
        "subrequest": subrequest,
        "device_class": text(request.get("deviceClassName")),
        "allocation_mode": mode,
        "device_count": None if mode == "All" else 1 if count is None else count,
        "is_admin_access": request.get("adminAccess") is True,
        "capacities": amounts(mapping(request.get("capacity")).get("requests")),
    }


def claim_device_rows(claim: Object) -> Iterator[Row]:
    """Yield the claim's allocated devices. A pool's name may contain slashes, so the three parts are never joined."""
    results = objects(mapping(_allocation(claim).get("devices")).get("results"))
    identity = _identity(claim) if results else {}
    for result in results:
        request, _, subrequest = text(result.get("request")).partition("/")
        yield {
            **identity,
            "driver": text(result.get("driver")),
            "pool": text(result.get("pool")),
            "device": text(result.get("device")),
            "request": request,
            "subrequest": subrequest,
            "share_id": text(result.get("shareID")),
            "consumed_capacity": amounts(result.get("consumedCapacity")),
            "is_admin_access": result.get("adminAccess") is True,
        }


def claim_consumer_rows(claim: Object) -> Iterator[Row]:
    """Yield the consumers of the claim: pods, or groups of pods."""
    consumers = objects(mapping(claim.get("status")).get("reservedFor"))
    identity = _identity(claim) if consumers else {}
    for each in consumers:
        yield {
            **identity,
            "consumer_resource": text(each.get("resource")),
            "consumer_group": text(each.get("apiGroup")),
            "consumer": text(each.get("name")),
            "consumer_uid": text(each.get("uid")),
        }
