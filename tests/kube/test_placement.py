"""Koordinator's recorded placements, foretold from the cluster as it was before them: fit devices, lowest number first."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from gpureport.compute.query import build, load, needed
from gpureport.lake import open_lake, views
from gpureport.values.tables import TABLES
from kube.lake import RECORDING, import_state

WINDOW = {"since_at": datetime(2026, 11, 21), "until_at": datetime(2026, 11, 22)}


def recorded(pod: str) -> list[int]:
    """The minors in a pod's annotation."""
    items = json.loads((RECORDING / "pods.json").read_text())["items"]
    (found,) = (item for item in items if item["metadata"]["name"] == pod)
    allocated = found["metadata"]["annotations"]["scheduling.koordinator.sh/device-allocated"]
    return [device["minor"] for device in json.loads(allocated)["gpu"]]


def without(pods: set[str], folder: Path) -> Path:
    """The recording without these pods."""
    shutil.copytree(RECORDING, folder)
    for file in folder.glob("pods*.json"):
        listed = json.loads(file.read_text())
        listed["items"] = [item for item in listed["items"] if item["metadata"]["name"] not in pods]
        file.write_text(json.dumps(listed))
    return folder


@pytest.mark.parametrize(
    ("absent", "largest_percent", "minors", "next_pod"),
    [
        ({"koord-two-0"}, 200, [2, 3], "koord-two-0"),  # device 0 is not fit, half of 1 is given: two are whole
        ({"koord-two-0", "koord-half-0"}, 300, [1, 2, 3], "koord-half-0"),
    ],
)
def test_the_next_pod_was_given_the_lowest_devices_that_fit(
    tmp_path: Path, absent: set[str], largest_percent: float, minors: list[int], next_pod: str
) -> None:
    import_state(tmp_path / "lake", without(absent, tmp_path / "state"))
    queries = load()
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        views(con, open_lake(tmp_path / "lake"), [table.name for table in TABLES])
        for query in needed(queries, ["report.node_free"]):
            build(con, query, WINDOW)
        statement = "select largest_percent, largest_minors from report.node_free where device_type = 'gpu'"
        assert con.execute(statement).fetchall() == [(largest_percent, ",".join(map(str, minors)))]
    given = recorded(next_pod)
    assert given == minors[: len(given)]
