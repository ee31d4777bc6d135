"""Checkpoint files of both versions, and PodResources dumps in both spellings."""

from typing import Any

import pytest

from gpureport.collect.state.pod_devices import completed, kubelet_rows

GPU = "nvidia.com/gpu"


def checkpoint(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"Data": {"PodDeviceEntries": list(entries), "RegisteredDevices": {GPU: ["GPU-a"]}}, "Checksum": 1}


def entry(ids: Any, uid: str = "u1", resource: str = GPU) -> dict[str, Any]:
    return {"PodUID": uid, "ContainerName": "main", "ResourceName": resource, "DeviceIDs": ids, "AllocResp": "CgA="}


def found(reply: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = kubelet_rows(reply)
    assert rows is not None
    return [(row["device_id"], row["replica"], row["numa_nodes"]) for row in rows]


def test_version_1_lists_ids() -> None:
    assert found(checkpoint(entry(["GPU-a", "GPU-b"]))) == [("GPU-a", "", []), ("GPU-b", "", [])]


def test_version_2_lists_ids_by_numa_node_and_a_device_on_two_nodes_is_one() -> None:
    ids = {"0": ["GPU-a", "GPU-b"], "1": ["GPU-a"], "-1": ["MIG-c"]}
    assert found(checkpoint(entry(ids))) == [("GPU-a", "", [0, 1]), ("GPU-b", "", [0]), ("MIG-c", "", [])]


@pytest.mark.parametrize("digits", [20, 5000])
def test_a_number_that_is_no_numa_node_is_none(digits: int) -> None:
    assert found(checkpoint(entry({"9" * digits: ["GPU-a"]}))) == [("GPU-a", "", [])]


def test_a_replica_is_a_share_of_its_device() -> None:
    assert found(checkpoint(entry({"-1": ["GPU-a::3"]}))) == [("GPU-a", "3", [])]


@pytest.mark.parametrize("ids", [None, {}, [], {"0": None}, "GPU-a"])
def test_no_ids_are_no_devices(ids: Any) -> None:
    assert found(checkpoint(entry(ids))) == []
    assert found({"Data": {"PodDeviceEntries": None}, "Checksum": 1}) == []


@pytest.mark.parametrize("reply", [{}, {"kind": "PodList"}, {"Data": None}, {"Data": {}}, {"gitVersion": "v1.36.2"}])
def test_other_replies_are_neither(reply: dict[str, Any]) -> None:
    assert kubelet_rows(reply) is None


SNAKE = {
    "pod_resources": [
        {
            "name": "p",
            "namespace": "ns",
            "containers": [
                {
                    "name": "main",
                    "devices": [
                        {"resource_name": GPU, "device_ids": ["GPU-a"], "topology": {"nodes": [{"ID": 1}, {"ID": "2"}, {}]}}
                    ],
                    "dynamic_resources": [
                        {
                            "claim_name": "c",
                            "claim_namespace": "ns",
                            "claim_resources": [{"driver_name": "d.io", "pool_name": "n1", "device_name": "gpu-0"}],
                        }
                    ],
                },
                {"name": "sidecar", "devices": None},
            ],
        }
    ]
}


def camel(value: Any) -> Any:
    if isinstance(value, dict):
        words = {key: key.split("_") for key in value}
        return {first + "".join(map(str.capitalize, rest)): camel(value[key]) for key, (first, *rest) in words.items()}
    return [camel(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("reply", [SNAKE, camel(SNAKE)], ids=["snake", "camel"])
def test_a_dump_gives_plugin_devices_and_claims(reply: dict[str, Any]) -> None:
    rows = kubelet_rows(reply)
    assert rows is not None
    plugin, claimed = rows
    assert (plugin["namespace"], plugin["pod"], plugin["container"], plugin["resource"]) == ("ns", "p", "main", GPU)
    assert (plugin["device_id"], plugin["numa_nodes"]) == ("GPU-a", [0, 1, 2])
    assert (claimed["claim"], claimed["driver"], claimed["pool"], claimed["device"]) == ("c", "d.io", "n1", "gpu-0")


PODS = [
    {"namespace": "ns", "pod": "p", "pod_uid": "u1", "node_name": "n1"},
    {"namespace": "ns", "pod": "koord", "pod_uid": "u2", "node_name": "n2"},
]


def test_listed_pods_give_the_names_to_uids_and_the_uids_to_names() -> None:
    rows = [*(kubelet_rows(checkpoint(entry(["GPU-a"]), entry(["GPU-z"], "gone"))) or []), *(kubelet_rows(SNAKE) or [])]
    assert [(row["namespace"], row["pod"], row["pod_uid"], row["node_name"]) for row in completed(rows, PODS, [])] == [
        ("ns", "p", "u1", "n1"),
        ("", "", "gone", ""),
        ("ns", "p", "u1", "n1"),
        ("ns", "p", "u1", "n1"),
    ]


def test_pods_that_koordinator_placed_are_left_out() -> None:
    rows = kubelet_rows(checkpoint(entry(["GPU-a"]), entry(["GPU-b"], "u2"))) or []
    kept = completed(rows, PODS, [{"source": "koordinator", "pod_uid": "u2"}])
    assert [row["device_id"] for row in kept] == ["GPU-a"]


def test_the_same_device_told_twice_is_one() -> None:
    rows = kubelet_rows(checkpoint(entry(["GPU-a"]), entry(["GPU-a"]))) or []
    assert len(list(completed(rows, PODS, []))) == 1
