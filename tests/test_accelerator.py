"""cAdvisor's own test data through the whole program: exact integers in every form of the report, and nothing to add up twice."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from math import floor
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from golden_case import GOLDEN, Told, told

from gpureport.values.runtime.resources import RECORDING

P100 = {
    "make": "nvidia",
    "model": "tesla-p100",
    "id": "GPU-deadbeef-1234-5678-90ab-feedfacecafe",
    "memory_total": 20_304_050_607,
    "memory_used": 2_030_405_060,
    "duty_cycle": 12,
}
K80 = {
    "make": "nvidia",
    "model": "tesla-k80",
    "id": "GPU-deadbeef-0123-4567-89ab-feedfacecafe",
    "memory_total": 10_203_040_506,
    "memory_used": 1_020_304_050,
    "duty_cycle": 6,
}


@pytest.fixture
def cadvisor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The report that cAdvisor's test data is in."""
    return told(GOLDEN / "accelerator/cadvisor_fixture", request, tmp_path_factory)


def documents(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report.json").read_bytes()))


def accelerators(cadvisor: Told) -> dict[str, list[dict[str, Any]]]:
    """Of each container of cAdvisor's data what the document says of its accelerators, ids as the data have them."""
    return {
        each["container"]: [{**found, "id": found["id"].removesuffix(cadvisor.mark)} for found in each["accelerators"]]
        for each in documents(cadvisor.folder)["containers"]
        if each["namespace"].endswith(cadvisor.mark)
    }


def test_report_json_has_cadvisors_accelerators_with_its_integers(cadvisor: Told) -> None:
    containers = accelerators(cadvisor)
    assert containers.keys() == {"trainer", "server"}
    shown = {name: [{field: each[field] for field in P100} for each in found] for name, found in containers.items()}
    assert shown == {"trainer": [K80, P100], "server": [P100]}
    assert all(isinstance(each["duty_cycle"], int) for found in containers.values() for each in found)


def test_the_csv_has_the_same_integers(cadvisor: Told) -> None:
    with (cadvisor.folder / "csv/accelerator.csv").open(newline="") as file:
        rows = {(row["container"], row["id"]): row for row in csv.DictReader(file) if row["namespace"].endswith(cadvisor.mark)}
    row = rows["trainer", f"{P100['id']}{cadvisor.mark}"]
    assert (row["memory_total_bytes"], row["memory_used_bytes"]) == ("20304050607", "2030405060")
    assert float(row["duty_cycle_percent"]) == 12
    assert len(rows) == 3


def test_rows_that_share_a_whole_device_say_so(cadvisor: Told) -> None:
    shared = [each for found in accelerators(cadvisor).values() for each in found if each["id"] == P100["id"]]
    assert [(each["memory_total_scope"], each["memory_scope"], each["duty_cycle_scope"]) for each in shared] == [
        ("device",) * 3
    ] * 2


def test_a_link_above_its_capacity_is_a_failed_check_on_the_first_screen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = told(GOLDEN / "links/share_of_the_links", request, tmp_path_factory).folder
    document = documents(folder)
    (failed,) = document["failed_checks"]
    assert failed.startswith("checks.link_ratio_above_one: Links that carry more than their capacity")
    assert "link=nvlink_rx, link_ratio=2.0" in failed
    assert "checks.link_ratio_above_one" in (folder / "report.html").read_text()
    assert document["settings"]["links of NVIDIA H100 80GB HBM3"]["nvlink_bytes_per_second"] == 450e9


def by_pod(metric: str) -> dict[str, list[float]]:
    """The recording's values of a metric by pod, '' for the device's own; it was scraped once a second."""
    found = defaultdict(list)
    with gzip.open(RECORDING / "metrics.openmetrics.txt.gz", "rt") as file:
        for line in file:
            if line.startswith(f"{metric}{{"):
                pod = re.search(r',pod="([^"]*)"', line)
                found[pod[1] if pod else ""].append(float(line.split()[-2]))
    return found


def test_the_recordings_pods_have_their_own_memory_and_utilisation(demo: Path) -> None:
    containers = {each["pod"]: each["accelerators"] for each in documents(demo)["containers"]}
    used, util = by_pod("DCGM_FI_DEV_FB_USED"), by_pod("DCGM_FI_DEV_GPU_UTIL")
    assert containers.keys() == used.keys() - {""}
    for pod, (accelerator,) in containers.items():
        assert (accelerator["memory_scope"], accelerator["duty_cycle_scope"]) == ("pod", "pod")
        # Steps of a second are two milliseconds off here and there: a mean over time is almost one over samples.
        assert accelerator["memory_used"] == pytest.approx(mean(used[pod]) * 2**20, rel=1e-4)
        assert accelerator["duty_cycle"] == floor(mean(util[pod]) + 0.5)
    assert held_bytes(used) <= sum(used[""])


def held_bytes(used: Mapping[str, list[float]]) -> float:
    """MiB x s of the pods together: their processes hold no more than the device."""
    return sum(sum(values) for pod, values in used.items() if pod)
