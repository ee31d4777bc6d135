"""A reviewed cluster gets exactly the findings that were planted in it, for as long as they were, and no others above info.

Small in the suite; ``make review-month`` runs the same over 300 GPUs and 30 days.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.period import ReportSettings, WindowTables
from gpureport.lake import open_lake
from gpureport.simulate import SimulationPlan, fill_lake, review_plan, write_truth
from tests.simulate.conftest import ms

Row = dict[str, Any]
HOUR_MS = 3_600_000
SLICES = {"3g.40gb": 3, "3g.71gb": 3}


@pytest.fixture(scope="module")
def review(pytestconfig: pytest.Config) -> SimulationPlan:
    gpus, days = (int(pytestconfig.getoption(f"review_{name}", default)) for name, default in (("gpus", 24), ("days", 2)))
    return review_plan(gpus, days, date(2026, 10, 1))


@pytest.fixture(scope="module")
def planted(review: SimulationPlan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return json.loads(write_truth(review, tmp_path_factory.mktemp("planted")).read_text())


@pytest.fixture(scope="module")
def found(review: SimulationPlan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    path: Path = tmp_path_factory.mktemp("review") / "lake"
    fill_lake(review, path, "sim")
    lake = open_lake(path)
    compute_days(lake, [("sim", day) for day in review.dates], ComputeSettings())
    tables = ("finding", "gpu_hour_balance", "pod_wait", "supply_demand")
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        WindowTables(con, lake, review.window, ReportSettings()).build([f"report.{name}" for name in tables])
        return {name: con.sql(f"from report.{name}").to_arrow_table().to_pylist() for name in tables}


def of_code(found: dict[str, list[Row]], code: str) -> list[Row]:
    return [row for row in found["finding"] if row["code"] == code]


def hours(review: SimulationPlan, holder: Row) -> float:
    """GPU-hours for which it held all of its devices within the plan."""
    start = max(ms(holder["start_at"]), review.window.start_ms)
    end = min(ms(holder["end_at"]) if holder["end_at"] else review.window.end_ms, review.window.end_ms)
    return (end - start) / HOUR_MS * len(holder["devices"])


def near(review: SimulationPlan, value: float, edges: int) -> Any:
    """A planted number of hours; each edge of a hold shows at the next scrape."""
    return pytest.approx(value, abs=edges * review.step_seconds / 3600)


def test_each_kind_of_trouble_is_planted(planted: dict[str, Any]) -> None:
    kinds = Counter(holder["kind"] for holder in planted["holders"])
    assert kinds["reserve"] and kinds["embed"] and kinds["segment"]
    assert planted["throttled"] and planted["xids"]
    assert any(device["gpu_instance_id"] for device in planted["devices"])


def test_idle_holders_are_found_with_the_hours_that_they_held(
    found: dict[str, list[Row]], review: SimulationPlan, planted: dict[str, Any]
) -> None:
    expected = {holder["pod"]: near(review, hours(review, holder), 4) for holder in planted["holders"] if holder["is_idle"]}
    assert {row["pod"]: row["gpu_hours"] for row in of_code(found, "GR101")} == expected


def test_the_bandwidth_bound_workload_is_found(
    found: dict[str, list[Row]], review: SimulationPlan, planted: dict[str, Any]
) -> None:
    bound = [holder for holder in planted["holders"] if holder["kind"] == "embed"]
    expected = {(holder["pod"], holder["devices"][0]["device_uuid"]): near(review, hours(review, holder), 2) for holder in bound}
    assert {(row["pod"], row["device_uuid"]): row["gpu_hours"] for row in of_code(found, "GR202")} == expected


def test_the_hot_rack_is_found_gpu_by_gpu_for_as_long_as_it_was_hot(
    found: dict[str, list[Row]], review: SimulationPlan, planted: dict[str, Any]
) -> None:
    expected = {(hot["pod"], hot["device_uuid"]): near(review, hot["seconds"] / 3600, 1) for hot in planted["throttled"]}
    assert {(row["pod"], row["device_uuid"]): row["gpu_hours"] for row in of_code(found, "GR302")} == expected
    assert {row["confidence"] for row in of_code(found, "GR302")} == {"high"}


def test_the_sick_gpus_errors_are_found_by_code(found: dict[str, list[Row]], planted: dict[str, Any]) -> None:
    expected = {(xid["device_uuid"], str(xid["code"])) for xid in planted["xids"]}
    assert {(row["device_uuid"], row["detail"]) for row in of_code(found, "GR401")} == expected


def test_what_of_a_gpu_is_in_no_instance_is_stranded(
    found: dict[str, list[Row]], review: SimulationPlan, planted: dict[str, Any]
) -> None:
    lost: Counter[str] = Counter()
    for device in planted["devices"]:
        if device["gpu_instance_id"]:
            lost[device["node"]] += 24 * review.days * (7 - SLICES[device["gpu_instance_profile"]]) / 7
    expected = {node: near(review, gpu_hours, 8) for node, gpu_hours in lost.items()}
    assert {row["node_name"]: row["gpu_hours"] for row in of_code(found, "GR601")} == expected


def test_the_starved_team_is_found_with_the_hours_that_it_waited(
    found: dict[str, list[Row]], review: SimulationPlan, planted: dict[str, Any]
) -> None:
    starved = [holder for holder in planted["holders"] if holder["kind"] == "segment"]
    waited = sum((ms(holder["start_at"]) - ms(holder["created_at"])) / HOUR_MS for holder in starved)
    assert waited == 12 * len(starved)
    [row] = of_code(found, "GR510")
    assert row["namespace"] == "vision"
    assert row["gpu_hours"] == near(review, waited, len(starved))


def test_nothing_else_is_found_above_info(found: dict[str, list[Row]]) -> None:
    grave = {row["code"] for row in found["finding"] if row["severity"] != "info"}
    assert grave == {"GR101", "GR302", "GR401", "GR510"}


def test_the_simulated_demo_writes_a_report_and_what_was_planted(simulated_demo: Path) -> None:
    assert (simulated_demo / "report.html").exists()
    assert (simulated_demo / "truth.json").exists()
    with (simulated_demo / "csv" / "finding.csv").open(newline="") as file:
        assert {"GR101", "GR302", "GR401"} <= {row["code"] for row in csv.DictReader(file)}


def test_every_gpu_hour_is_accounted_for(found: dict[str, list[Row]], review: SimulationPlan) -> None:
    [total] = [row for row in found["gpu_hour_balance"] if row["dimension"] == "cluster"]
    assert total["difference_gpu_hours"] == 0
    assert total["capacity_gpu_hours"] == pytest.approx(review.gpus * 24 * review.days, rel=1e-4)


def test_classes_of_waiting_pods_have_the_hours_of_their_size(found: dict[str, list[Row]]) -> None:
    rows = found["supply_demand"]
    waits = {(row["size"], row["wanted_model"]): row["waiting_gpu_hours"] for row in rows}
    sizes = {size: sum(hours for (of, _), hours in waits.items() if of == size) for size, _ in waits}
    assert sizes == {row["size"]: pytest.approx(row["pending_gpu_hours"]) for row in found["pod_wait"]}
