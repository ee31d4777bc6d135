"""Conversion of pods' devices to ``pod_device``: Koordinator's annotations, the kubelet's checkpoints and PodResources dumps.

Koordinator's Device objects become ``koordinator_device``. Neither kubelet source has history. Checkpoints identify pods by UID,
dumps by name; the listed pods complete the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpureport.collect.state.fields import Object, Row, condition, listed, mapping, noted, objects, pci_bus_id, text, texts, whole
from gpureport.collect.state.pods import pod_identity
from gpureport.values.quantity import amounts

KOORDINATOR = "koordinator"
_ALLOCATED = "scheduling.koordinator.sh/device-allocated"
_PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
_LABELS = "node.koordinator.sh/"
_OLD_DOMAIN = "kubernetes.io/"
_DOMAIN = "koordinator.sh/"


def koordinator_device_rows(found: Object) -> Iterator[Row]:
    """Yield the devices of a node, healthy or not."""
    metadata = mapping(found.get("metadata"))
    own_labels = {name: value for name, value in texts(metadata.get("labels")).items() if name.startswith(_LABELS)}
    partitions = text(mapping(metadata.get("annotations")).get(_PARTITIONS))
    for device in objects(mapping(found.get("spec")).get("devices")):
        topology = mapping(device.get("topology"))
        yield {
            "node_name": text(metadata.get("name")),
            "device_type": text(device.get("type")),
            "minor": whole(device.get("minor")) or 0,  # versions before 1.0 omit a zero
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
    """Return amounts under the current names: kubernetes.io/gpu-core, before version 1.2, is koordinator.sh/gpu-core."""
    return {
        _DOMAIN + name.removeprefix(_OLD_DOMAIN) if name.startswith(_OLD_DOMAIN) else name: found
        for name, found in amounts(quantities).items()
    }


def annotated_device_rows(pod: Object) -> Iterator[Row]:
    """Yield the devices that Koordinator's scheduler allocated to a pod. The containers that use them are unknown."""
    annotations = mapping(mapping(pod.get("metadata")).get("annotations"))
    node = text(mapping(pod.get("spec")).get("nodeName"))
    for device_type, devices in mapping(noted(annotations.get(_ALLOCATED))).items():
        for device in objects(devices):
            yield {
                "source": KOORDINATOR,
                **pod_identity(pod),
                "node_name": node,
                "device_type": device_type,
                "device_id": text(device.get("id")),  # since 1.6; older versions have only the minor
                "minor": whole(device.get("minor")) or 0,
                "amounts": resource_amounts(device.get("resources")),
            }


CHECKPOINT = "kubelet-checkpoint"
POD_RESOURCES = "pod-resources"


def kubelet_rows(reply: Object) -> list[Row] | None:
    """Return the rows of a checkpoint file or a PodResources dump; None for any other reply."""
    if "PodDeviceEntries" in mapping(reply.get("Data")):
        return list(_checkpoint_rows(objects(reply["Data"]["PodDeviceEntries"])))
    if _protobuf_field(reply, "pod_resources") is not None:
        return list(_pod_resources_rows(objects(_protobuf_field(reply, "pod_resources"))))
    return None


def completed(rows: Iterable[Row], pods: Iterable[Row], koordinator: Iterable[Row]) -> Iterator[Row]:
    """Yield the kubelet rows once each, completed from the listed pods, without pods that have Koordinator's annotation.

    Koordinator's handover to the kubelet repeats devices, or reports fractions as whole devices.
    """
    known = list(pods)
    by_uid = {pod["pod_uid"]: pod for pod in known}
    by_name = {(pod["namespace"], pod["pod"]): pod for pod in known}
    placed = {row["pod_uid"] for row in koordinator}
    seen = set()
    for row in rows:
        pod = by_uid.get(row["pod_uid"]) or by_name.get((row["namespace"], row["pod"])) or {}
        complete = row | {name: pod[name] for name in ("namespace", "pod", "pod_uid", "node_name") if pod}
        key = tuple(complete[name] for name in ("source", *_KEYS))
        if complete["pod_uid"] not in placed and key not in seen:
            seen.add(key)
            yield complete


_KEYS = ("namespace", "pod", "pod_uid", "container", "resource", "device_id", "replica", "driver", "pool", "device", "share_id")


def _checkpoint_rows(entries: Iterable[Object]) -> Iterator[Row]:
    for entry in entries:
        for device_id, numa_nodes in _device_ids(entry.get("DeviceIDs")).items():
            yield {
                **_row(CHECKPOINT, device_id, numa_nodes),
                "pod_uid": text(entry.get("PodUID")),
                "container": text(entry.get("ContainerName")),
                "resource": text(entry.get("ResourceName")),
            }


def _device_ids(written: Any) -> Mapping[str, list[int]]:
    """Return device ids with their NUMA nodes: a list up to Kubernetes 1.19; lists by node from 1.20, where -1 means none."""
    if isinstance(written, list):
        return {device_id: [] for device_id in written if isinstance(device_id, str)}
    found: dict[str, list[int]] = {}
    for numa, ids in mapping(written).items():
        for device_id in listed(ids):
            nodes = found.setdefault(text(device_id), [])
            if numa.isdecimal() and len(numa) < 19:
                nodes.append(int(numa))
    return found


def _pod_resources_rows(pods: Iterable[Object]) -> Iterator[Row]:
    for pod in pods:
        for container in objects(pod.get("containers")):
            of = {"namespace": text(pod.get("namespace")), "pod": text(pod.get("name")), "container": text(container.get("name"))}
            yield from (row | of for row in (*_plugin_rows(container), *_claim_rows(container)))


def _plugin_rows(container: Object) -> Iterator[Row]:
    for each in objects(container.get("devices")):
        named = [str(node.get("ID")) for node in objects(mapping(each.get("topology")).get("nodes"))]  # protobuf's JSON: "1"
        nodes = [int(node) if node.isdecimal() and len(node) < 19 else 0 for node in named]
        for device_id in listed(_protobuf_field(each, "device_ids")):
            yield _row(POD_RESOURCES, text(device_id), nodes) | {"resource": text(_protobuf_field(each, "resource_name"))}


def _claim_rows(container: Object) -> Iterator[Row]:
    for claim in objects(_protobuf_field(container, "dynamic_resources")):
        for each in objects(_protobuf_field(claim, "claim_resources")):
            yield {
                **_row(POD_RESOURCES, "", []),
                "claim": text(_protobuf_field(claim, "claim_name")),
                "driver": text(_protobuf_field(each, "driver_name")),
                "pool": text(_protobuf_field(each, "pool_name")),
                "device": text(_protobuf_field(each, "device_name")),
                "share_id": text(_protobuf_field(each, "share_id")),
            }


def _row(source: str, device_id: str, numa_nodes: list[int]) -> Row:
    """Return the row of a device id. The replica of a shared device follows two colons."""
    own_id, _, replica = device_id.partition("::")
    names = ("namespace", "pod", "pod_uid", "node_name", "container", "resource", "driver", "pool", "device", "share_id", "claim")
    return dict.fromkeys(names, "") | {
        "source": source,
        "device_id": own_id,
        "replica": replica,
        "numa_nodes": sorted(numa_nodes),
    }


def _protobuf_field(found: Object, name: str) -> Any:
    """Return a field by its protocol name or its name in protobuf's JSON: device_ids, deviceIds."""
    first, *rest = name.split("_")
    return found.get(name, found.get(first + "".join(word.capitalize() for word in rest)))
