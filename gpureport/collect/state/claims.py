"""ResourceClaims → rows of ``claim``, ``claim_device`` and ``claim_consumer``, for v1, v1beta2 and v1beta1 alike."""

from __future__ import annotations

from collections.abc import Iterator

from gpureport.collect.state.fields import Object, Row, instant, mapping, objects, only_node, text, whole
from gpureport.values.quantity import amounts

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
    """A claim: what it requests, whose it is, whether it was granted."""
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


def _request(name: str, subrequest: str, asked: Object) -> Row:
    mode = text(asked.get("allocationMode")) or "ExactCount"
    count = whole(asked.get("count"))
    return {
        "request": name,
        "subrequest": subrequest,
        "device_class": text(asked.get("deviceClassName")),
        "allocation_mode": mode,
        "device_count": None if mode == "All" else 1 if count is None else count,
        "is_admin_access": asked.get("adminAccess") is True,
        "capacities": amounts(mapping(asked.get("capacity")).get("requests")),
    }


def claim_device_rows(claim: Object) -> Iterator[Row]:
    """Devices allocated to the claim. A pool's name may hold slashes, so the three parts are never joined."""
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
    """Consumers of the claim: pods, or groups of pods."""
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
