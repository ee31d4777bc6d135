"""One odd object never costs the others: any field of any recorded object may be null, missing, or of another type."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.state import KINDS, Kind, Observation, kubelet_rows
from gpureport.values.tables import STATE_TABLES

FIXTURES = Path(__file__).parents[2] / "data" / "fixtures"
ODD = [None, "", "text", 0, -1, 1.5, 2**70, True, [], [None], ["text"], [[]], {}, {"": None}, {"a": []}, [{}], {"a": {"b": 1}}]
DELETED = object()


def recorded() -> list[tuple[Kind, dict[str, Any]]]:
    by_name = {(f"{kind.kind}List", kind.group): kind for kind in KINDS}
    found = []
    for file in sorted(FIXTURES.glob("k8s-*/*.json")):
        reply = json.loads(file.read_text())
        group = reply.get("apiVersion", "").rpartition("/")[0]
        if kind := by_name.get((reply.get("kind", ""), group)):
            found += [(kind, item) for item in reply["items"]]
    return found


OBJECTS = recorded()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path into a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if key != "managedFields":
            yield from places(each, (*path, key))


def changed(item: dict[str, Any], path: tuple[Any, ...], to: Any) -> dict[str, Any]:
    """The object with one place changed."""
    found = copy.deepcopy(item)
    parent: Any = found
    for key in path[:-1]:
        parent = parent[key]
    if to is DELETED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = to
    return found


def shaped(kind: Kind, *items: Any) -> dict[str, Any]:
    observation = Observation(0)
    observation.begin(kind, "v1")
    observation.add(kind, items)
    return observation.tables()


@settings(max_examples=400)
@given(st.data())
def test_an_odd_field_costs_no_other_object(data: st.DataObject) -> None:
    kind, item = data.draw(st.sampled_from(OBJECTS))
    path = data.draw(st.sampled_from(list(places(item))))
    odd = changed(item, path, data.draw(st.sampled_from([*ODD, DELETED])))
    other = copy.deepcopy(item)
    other["metadata"] |= {"uid": "another", "name": "another"}
    if kind.resource == "resourceslices":  # of another pool, or both are one
        other["spec"]["pool"] = {"name": "another", "generation": 1, "resourceSliceCount": 1}
    alone = {name: rows.num_rows for name, rows in shaped(kind, other).items()}
    both = shaped(kind, odd, other)
    assert all(both[name].num_rows >= count for name, count in alone.items())
    schemas = {table.name: table.schema for table in STATE_TABLES}
    for name, rows in both.items():
        rows.validate(full=True)
        assert rows.schema == schemas[name]
        assert [field.name for field in rows.schema if not field.nullable and rows[field.name].null_count] == []


CHECKPOINT = {
    "Data": {"PodDeviceEntries": [{"PodUID": "u", "ContainerName": "c", "ResourceName": "r", "DeviceIDs": {"0": ["GPU-a"]}}]},
    "pod_resources": [
        {
            "name": "p",
            "namespace": "n",
            "containers": [
                {
                    "name": "c",
                    "devices": [{"resource_name": "r", "device_ids": ["GPU-a"], "topology": {"nodes": [{"ID": 1}]}}],
                    "dynamic_resources": [{"claim_name": "c", "claim_resources": [{"driver_name": "d"}]}],
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("half", ["Data", "pod_resources"])
def test_an_odd_field_of_a_kubelets_file_is_no_crash(half: str) -> None:
    for path in places({half: CHECKPOINT[half]}):
        for odd in (*ODD, DELETED):
            observation = Observation(0)
            observation.add_kubelet(kubelet_rows(changed({half: CHECKPOINT[half]}, path, odd)) or [])
            observation.tables()
