"""Koordinator's Device objects and pod annotations → rows of ``koordinator_device`` and ``pod_device``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gpureport.collect.state.fields import Object, Row, condition, mapping, objects, pci_bus_id, text, texts, whole
from gpureport.collect.state.pods import pod_identity
from gpureport.values.quantity import amounts

SOURCE = "koordinator"
_ALLOCATED = "scheduling.koordinator.sh/device-allocated"
_PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
_LABELS = "node.koordinator.sh/"
_OLD_DOMAIN = "kubernetes.io/"
_DOMAIN = "koordinator.sh/"


def koordinator_device_rows(found: Object) -> Iterator[Row]:
    """The devices of a node, healthy or not."""
    metadata = mapping(found.get("metadata"))
    own_labels = {name: value for name, value in texts(metadata.get("labels")).items() if name.startswith(_LABELS)}
    partitions = text(mapping(metadata.get("annotations")).get(_PARTITIONS))
    for device in objects(mapping(found.get("spec")).get("devices")):
        topology = mapping(device.get("topology"))
        yield {
            "node_name": text(metadata.get("name")),
            "device_type": text(device.get("type")),
            "minor": whole(device.get("minor")) or 0,  # versions before 1.0 leave a zero out
            "device_id": text(device.get("id")),
            "is_healthy": device.get("health") is True,
            "health_reason": _health_reason(device),
            "resources": resource_amounts(device.get("resources")),
            "socket_id": whole(topology.get("socketID")),
            "numa_node": whole(topology.get("nodeID")),
            "pcie_id": text(topology.get("pcieID")),
            "pci_bus_id": pci_bus_id(text(topology.get("busID"))),
            "module_id": whole(device.get("moduleID")),
            "virtual_function_count": sum(len(objects(group.get("vfs"))) for group in objects(device.get("vfGroups"))),
            "labels": own_labels | texts(device.get("labels")),
            "gpu_partitions": partitions,
        }


def _health_reason(device: Object) -> str:
    healthy = condition(device.get("conditions"), "Healthy")
    return text(healthy.get("reason")) if healthy.get("status") == "False" else ""


def resource_amounts(quantities: Any) -> dict[str, float | None]:
    """Amounts under today's names: kubernetes.io/gpu-core, before version 1.2, is koordinator.sh/gpu-core."""
    return {
        _DOMAIN + name.removeprefix(_OLD_DOMAIN) if name.startswith(_OLD_DOMAIN) else name: found
        for name, found in amounts(quantities).items()
    }


def annotated_device_rows(pod: Object) -> Iterator[Row]:
    """Devices that Koordinator's scheduler gave to a pod as a whole; which of its containers uses them it does not say."""
    annotations = mapping(mapping(pod.get("metadata")).get("annotations"))
    if _ALLOCATED not in annotations:
        return
    node = text(mapping(pod.get("spec")).get("nodeName"))
    for device_type, devices in _allocated(annotations[_ALLOCATED]).items():
        for device in objects(devices):
            yield {
                "source": SOURCE,
                **pod_identity(pod),
                "node_name": node,
                "device_type": device_type,
                "device_id": text(device.get("id")),  # since 1.6; before that the minor alone
                "minor": whole(device.get("minor")) or 0,
                "amounts": resource_amounts(device.get("resources")),
            }


def _allocated(annotation: Any) -> Object:
    try:
        return mapping(orjson.loads(annotation)) if isinstance(annotation, str) else {}
    except orjson.JSONDecodeError:
        return {}
