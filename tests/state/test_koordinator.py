"""Koordinator's annotation and Device objects, in the shapes of its versions."""

import json
from typing import Any

import pytest

from gpureport.collect.state.pod_devices import annotated_device_rows, koordinator_device_rows


def rows(annotation: Any) -> list[dict[str, Any]]:
    written = annotation if isinstance(annotation, str) else json.dumps(annotation)
    metadata = {"name": "p", "uid": "u", "annotations": {"scheduling.koordinator.sh/device-allocated": written}}
    return list(annotated_device_rows({"metadata": metadata, "spec": {"nodeName": "n1"}}))


def test_todays_annotation_names_devices_by_uuid_and_amount() -> None:
    resources = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "50"}
    nic = {"minor": 0, "id": "0000:5e:00.0", "resources": {"koordinator.sh/rdma": 100}, "extension": {"vfs": [{"minor": 1}]}}
    gpu, rdma = rows({"gpu": [{"minor": 1, "id": "GPU-a", "resources": resources}], "rdma": [nic]})
    assert (gpu["device_type"], gpu["device_id"], gpu["minor"], gpu["node_name"]) == ("gpu", "GPU-a", 1, "n1")
    assert gpu["amounts"] == {
        "koordinator.sh/gpu-core": 50,
        "koordinator.sh/gpu-memory": 17_179_869_184,
        "koordinator.sh/gpu-memory-ratio": 50,
    }
    assert (rdma["device_id"], rdma["amounts"]) == ("0000:5e:00.0", {"koordinator.sh/rdma": 100})


def test_before_version_1_2_the_keys_had_another_domain_and_devices_no_id() -> None:
    resources = {"kubernetes.io/gpu-core": "100", "kubernetes.io/gpu-memory": "8Gi", "kubernetes.io/gpu-memory-ratio": "100"}
    [row] = rows({"gpu": [{"resources": resources}]})  # minor 0 was left out
    assert (row["minor"], row["device_id"]) == (0, "")
    assert row["amounts"] == {
        "koordinator.sh/gpu-core": 100,
        "koordinator.sh/gpu-memory": 8_589_934_592,
        "koordinator.sh/gpu-memory-ratio": 100,
    }


@pytest.mark.parametrize("annotation", ["", "{", "[]", "null", '{"gpu": null}', '{"gpu": {"minor": 1}}', '{"gpu": [null]}'])
def test_an_annotation_that_is_none_gives_no_devices(annotation: str) -> None:
    assert rows(annotation) == []


def test_a_device_object_gives_every_device_healthy_or_not() -> None:
    sick = {"type": "Healthy", "status": "False", "reason": "Xid79"}
    devices = [
        {"type": "gpu", "id": "GPU-a", "health": False, "conditions": [sick], "resources": {"koordinator.sh/gpu-core": "100"}},
        {
            "type": "rdma",
            "id": "0000:5e:00.0",
            "minor": 2,
            "health": True,
            "conditions": [{"type": "Healthy", "status": "True", "reason": "DeviceIsHealthy"}],
            "topology": {"socketID": -1, "nodeID": 1, "pcieID": "2", "busID": "0000:5E:00.0"},
            "vfGroups": [{"vfs": [{"minor": 0}, {"minor": 1}]}, {"vfs": None}],
            "labels": {"type": "fake"},
        },
    ]
    labels = {"node.koordinator.sh/gpu-model": "A100", "other": "x"}
    gpu, nic = koordinator_device_rows({"metadata": {"name": "n1", "labels": labels}, "spec": {"devices": devices}})
    assert (gpu["minor"], gpu["is_healthy"], gpu["health_reason"], gpu["numa_node"]) == (0, False, "Xid79", None)
    assert gpu["labels"] == {"node.koordinator.sh/gpu-model": "A100"}
    assert (nic["minor"], nic["numa_node"], nic["socket_id"], nic["pci_bus_id"]) == (2, 1, -1, "0000:5e:00.0")
    assert (nic["virtual_function_count"], nic["health_reason"]) == (2, "")
