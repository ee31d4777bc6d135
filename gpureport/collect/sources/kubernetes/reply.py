"""One list reply of an API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import orjson

from gpureport.collect.state.fields import Object, mapping, objects, text, whole


@dataclass(frozen=True)
class Page:
    """Objects of one kind as they came, and what the reply says of the rest of the list."""

    kind: str
    api_version: str
    items: list[Object]
    continue_token: str = ""
    remaining_count: int = 0
    is_start: bool = True
    """The list begins here, perhaps again: what came of it before does not count."""
    is_consistent: bool = True
    """All of the list is of one moment."""

    @property
    def group(self) -> str:
        """API group, '' for the core."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


def as_page(reply: Any, is_start: bool = True) -> Page | None:
    """The reply as a page, also where null stands for no items; None for what is no list."""
    found = mapping(reply)
    kind = text(found.get("kind"))
    if not kind.endswith("List") or "items" not in found:
        return None
    metadata = mapping(found.get("metadata"))
    return Page(
        kind=kind.removesuffix("List"),
        api_version=text(found.get("apiVersion")),
        items=objects(found["items"]),
        continue_token=text(metadata.get("continue")),
        remaining_count=whole(metadata.get("remainingItemCount")) or 0,
        is_start=is_start,
    )


class _Metadata(TypedDict, total=False):
    name: Any
    namespace: Any
    uid: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    labels: Any
    annotations: Any
    ownerReferences: Any


class _Container(TypedDict, total=False):
    name: Any
    resources: Any
    restartPolicy: Any


class _PodSpec(TypedDict, total=False):
    nodeName: Any
    nodeSelector: Any
    affinity: Any
    containers: list[_Container] | None
    initContainers: list[_Container] | None
    resources: Any
    overhead: Any
    resourceClaims: Any
    priority: Any
    priorityClassName: Any
    schedulerName: Any
    schedulingGroup: Any
    workloadRef: Any


class _Pod(TypedDict, total=False):
    metadata: _Metadata
    spec: _PodSpec | None
    status: Any


class _PodList(TypedDict, total=False):
    kind: Any
    apiVersion: Any
    metadata: Any
    items: list[_Pod] | None


class _Managed(TypedDict, total=False):
    time: Any
    subresource: Any


class _ObjectMetadata(_Metadata, total=False):
    managedFields: list[_Managed] | None


class _Object(TypedDict, total=False):
    kind: Any
    apiVersion: Any
    metadata: _ObjectMetadata
    spec: Any
    status: Any
    involvedObject: Any
    message: Any
    lastTimestamp: Any


class _ObjectList(TypedDict, total=False):
    kind: Any
    apiVersion: Any
    metadata: Any
    items: list[_Object] | None


_PODS = msgspec.json.Decoder(_PodList)
_OBJECTS = msgspec.json.Decoder(_ObjectList)


def decode_list(body: bytes | bytearray, resource: str) -> Any:
    """A list's JSON as dictionaries without what nobody reads (pods' managed fields, environments, volumes): most of a pod.

    A reply of another shape is decoded whole; orjson.JSONDecodeError for what is no JSON.
    """
    try:
        return (_PODS if resource == "pods" else _OBJECTS).decode(body)
    except msgspec.MsgspecError:
        return orjson.loads(body)
