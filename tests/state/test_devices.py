"""Devices of ResourceSlices: which are there, and who they are."""

from typing import Any

import pytest

from gpureport.collect.state.dra import Pools
from gpureport.collect.state.fields import pci_bus_id

Row = dict[str, Any]


def a_slice(
    devices: list[Row] | None, driver: str = "gpu.nvidia.com", pool: str = "n1", generation: int = 1, count: int = 1, **spec: Any
) -> Row:
    reported = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return {"spec": {"driver": driver, "pool": reported, "devices": devices, **spec}}


def named(name: str, **attributes: Any) -> Row:
    return {"name": name, "attributes": {key.replace("__", "/"): value for key, value in attributes.items()}}


def text(value: str) -> Row:
    return {"string": value}


def rows(*slices: Row) -> list[Row]:
    pools = Pools()
    for each in slices:
        pools.add(each)
    return sorted(pools.rows(), key=lambda row: (row["driver"], row["pool"], row["device"]))


def only(*slices: Row) -> Row:
    [row] = rows(*slices)
    return row


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_only_the_newest_generation_is_there_whatever_the_order(order: list[int]) -> None:
    slices = [
        a_slice([{"name": "old"}], generation=2),
        a_slice([{"name": "gpu-0"}], generation=3, count=2),
        a_slice([{"name": "gpu-1"}], generation=3, count=2),
    ]
    found = rows(*(slices[number] for number in order))
    assert [(row["device"], row["pool_generation"], row["is_pool_complete"]) for row in found] == [
        ("gpu-0", 3, True),
        ("gpu-1", 3, True),
    ]


def test_a_pool_that_lacks_slices_is_shown_and_flagged() -> None:
    assert only(a_slice([{"name": "gpu-0"}], count=2))["is_pool_complete"] is False


def test_the_same_pool_of_another_driver_is_another_pool() -> None:
    found = rows(
        a_slice([{"name": "gpu-0"}], generation=7),
        a_slice([{"name": "channel-0"}], driver="compute-domain.nvidia.com", generation=1),
    )
    assert [row["driver"] for row in found] == ["compute-domain.nvidia.com", "gpu.nvidia.com"]


def test_a_name_that_two_devices_have_is_flagged() -> None:
    found = rows(a_slice([{"name": "gpu-0"}, {"name": "gpu-1"}], count=2), a_slice([{"name": "gpu-1"}], count=2))
    assert [(row["device"], row["is_name_unique"]) for row in found] == [("gpu-0", True), ("gpu-1", False), ("gpu-1", False)]


def test_a_slice_of_counters_counts_for_the_pool_and_has_no_devices() -> None:
    counters = a_slice(None, count=2, sharedCounters=[{"name": "gpu-0-counter-set"}])
    assert only(counters, a_slice([{"name": "gpu-0"}], count=2))["is_pool_complete"] is True


IDENTITIES = [
    # A whole NVIDIA GPU: its own domain, unqualified.
    ("gpu.nvidia.com", {"uuid": "GPU-a", "type": "gpu"}, {"uuid": "GPU-a", "device_uuid": "GPU-a", "device_type": "gpu"}),
    ("gpu.nvidia.com", {"gpu.nvidia.com/uuid": "GPU-a"}, {"uuid": "GPU-a", "device_uuid": "GPU-a"}),
    # A MIG instance is a part of its parent.
    (
        "gpu.nvidia.com",
        {"uuid": "MIG-b", "parentUUID": "GPU-a", "profile": "1g.10gb", "type": "mig"},
        {"uuid": "MIG-b", "parent_uuid": "GPU-a", "device_uuid": "GPU-a", "profile": "1g.10gb"},
    ),
    # Made on demand: no UUID of its own.
    ("gpu.nvidia.com", {"parentUUID": "GPU-a", "profile": "1g.10gb"}, {"uuid": "", "device_uuid": "GPU-a"}),
    # An instance whose parent nobody names is no GPU.
    ("gpu.nvidia.com", {"uuid": "MIG-b"}, {"uuid": "MIG-b", "device_uuid": ""}),
    # Another domain's uuid serves where the driver has none.
    ("hami.io", {"other.io/uuid": "GPU-c"}, {"uuid": "GPU-c", "device_uuid": "GPU-c"}),
    ("hami.io", {"other.io/uuid": "GPU-c", "uuid": "GPU-own"}, {"uuid": "GPU-own"}),
    # PCI addresses: the standard attribute, older NVIDIA names, AMD's, and a partition's parent.
    ("gpu.nvidia.com", {"resource.kubernetes.io/pciBusID": "0000:18:00.0"}, {"pci_bus_id": "0000:18:00.0"}),
    ("gpu.nvidia.com", {"pcieBusID": "00000000:18:00.0"}, {"pci_bus_id": "0000:18:00.0"}),
    ("gpu.amd.com", {"pciAddr": "0000:03:00.0", "productName": "MI300X"}, {"pci_bus_id": "0000:03:00.0", "gpu_model": "MI300X"}),
    (
        "gpu.amd.com",
        {"parentPciAddr": "0000:03:00.0", "partitionProfile": "cpx_nps4", "type": "partition"},
        {"pci_bus_id": "0000:03:00.0", "profile": "cpx_nps4", "device_uuid": ""},
    ),
    (
        "gpu.intel.com",
        {"pciAddress": "0000:03:00.0", "model": "Flex 170"},
        {"pci_bus_id": "0000:03:00.0", "gpu_model": "Flex 170"},
    ),
]


@pytest.mark.parametrize(("driver", "attributes", "expected"), IDENTITIES)
def test_identity_comes_from_the_best_attribute_there_is(driver: str, attributes: Row, expected: Row) -> None:
    reported = {name: text(value) for name, value in attributes.items()}
    row = only(a_slice([{"name": "d", "attributes": reported}], driver=driver))
    assert {name: row[name] for name in expected} == expected


def test_attributes_of_every_type_are_text_under_their_full_names() -> None:
    device = named(
        "d",
        shared={"bool": True},
        index={"int": 0},
        cudaDriverVersion={"version": "13.0.0"},
        other__links={"strings": ["a", "b"]},
        empty={},
        odd=None,
    )
    assert only(a_slice([device]))["attributes"] == {
        "gpu.nvidia.com/shared": "true",
        "gpu.nvidia.com/index": "0",
        "gpu.nvidia.com/cudaDriverVersion": "13.0.0",
        "other/links": "a,b",
    }


def test_the_node_stands_at_the_slice_or_at_the_device() -> None:
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}]}
    assert only(a_slice([{"name": "d"}], nodeName="n5"))["node_name"] == "n5"
    assert only(a_slice([{"name": "d", "nodeName": "n6"}], perDeviceNodeSelection=True))["node_name"] == "n6"
    assert only(a_slice([{"name": "d"}], nodeSelector=selector))["node_name"] == "n7"
    assert only(a_slice([{"name": "d"}], allNodes=True))["node_name"] == ""


def test_taints_tell_of_health() -> None:
    device = {"name": "d", "taints": [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]}
    assert only(a_slice([device]))["taints"] == ["gpu.nvidia.com/xid=79:NoSchedule"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("00000000:18:00.0", "0000:18:00.0"),
        ("0000:18:00.0", "0000:18:00.0"),
        ("00000001:AF:00.0", "0001:af:00.0"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("18:00.0", "0000:18:00.0"),
        ("", ""),
    ],
)
def test_pci_addresses_are_written_in_one_way(written: str, expected: str) -> None:
    assert pci_bus_id(written) == expected
