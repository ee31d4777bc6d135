"""A report on the simulated cluster finds what was planted, for as long as it was planted, and nothing else above info."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.compute.period import ReportSettings, WindowTables
from gpureport.lake import open_lake
from gpureport.simulate import SimulationPlan
from tests.simulate.conftest import ms

Row = dict[str, Any]
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def report(plan: SimulationPlan, simulated: Path) -> dict[str, list[Row]]:
    """Rows of the tables that the tests check, over both days."""
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        tables = ("finding", "gpu_hour_balance", "gpu_hour_ledger")
        WindowTables(con, open_lake(simulated), plan.window, ReportSettings()).build([f"report.{name}" for name in tables])
        return {name: con.sql(f"from report.{name}").to_arrow_table().to_pylist() for name in tables}


def held_hours(plan: SimulationPlan, holder: Row) -> float:
    """Hours of one of its devices within the plan."""
    start = max(ms(holder["start_at"]), plan.window.start_ms)
    end = min(ms(holder["end_at"]) if holder["end_at"] else plan.window.end_ms, plan.window.end_ms)
    return (end - start) / HOUR_MS


def of_code(report: dict[str, list[Row]], *codes: str) -> list[Row]:
    return [row for row in report["finding"] if row["code"] in codes]


def whole_gpus(truth: dict[str, Any]) -> set[str]:
    return {each["device_uuid"] for each in truth["devices"] if not each["gpu_instance_id"]}


def test_the_ledger_closes_over_shared_and_split_gpus_gaps_and_reloads(report: dict[str, list[Row]]) -> None:
    assert {row["difference_gpu_hours"] for row in report["gpu_hour_balance"]} == {0}
    [total] = [row for row in report["gpu_hour_balance"] if row["dimension"] == "cluster"]
    assert total["device_count"] == 24
    assert total["capacity_gpu_hours"] == pytest.approx(24 * 48, rel=1e-3)  # a device is expected from its first sample on


def workload(pod: str) -> str:
    """The simulated jobs are named workload-node-slot-number."""
    return pod.rsplit("-", 3)[0]


def test_idle_holders_and_no_others_are_found_idle(report: dict[str, list[Row]], truth: dict[str, Any]) -> None:
    own = [holder for holder in truth["holders"] if not holder["vgpu"]]
    idle = {workload(holder["pod"]) for holder in own if holder["is_idle"]}
    assert idle == {"holder"}
    assert {row["workload"] for row in of_code(report, "GR101")} == idle


def test_an_idle_workload_costs_the_hours_for_which_its_pods_held(
    report: dict[str, list[Row]], plan: SimulationPlan, truth: dict[str, Any]
) -> None:
    whole, hours = whole_gpus(truth), dict[str, float]()
    for row in report["gpu_hour_ledger"]:
        if row["bucket"] == "allocated_idle":
            hours[row["pod"]] = hours.get(row["pod"], 0) + row["gpu_hours"]
    own = [holder for holder in truth["holders"] if not holder["vgpu"] and holder["devices"][0]["device_uuid"] in whole]
    idle = [holder for holder in own if holder["is_idle"]]
    for holder in idle:
        gaps = sum(gap["missing_scrapes"] for gap in truth["gaps"] if gap["node"] == holder["node"]) / 60
        expected = held_hours(plan, holder) * len(holder["devices"])
        assert expected - gaps * len(holder["devices"]) - 0.1 <= hours.get(holder["pod"], 0) <= expected + 0.1
    assert len(idle) >= 3
    [found] = of_code(report, "GR101")
    assert found["gpu_hours"] == pytest.approx(sum(each for pod, each in hours.items() if workload(pod) == "holder"))


def test_throttled_phases_and_no_others_are_found(
    report: dict[str, list[Row]], plan: SimulationPlan, truth: dict[str, Any]
) -> None:
    """One for each GPU and reason, over all pods of which more than 5 % of the time was throttled."""
    holders = {holder["pod"]: holder for holder in truth["holders"]}
    by_gpu: dict[tuple[str, str], list[Row]] = {}
    for phase in truth["throttled"]:
        held = held_hours(plan, holders[phase["pod"]])
        if held > 0.2:
            ratio = phase["seconds"] / 3600 / held
            by_gpu.setdefault((phase["device_uuid"], phase["reason"]), []).append({**phase, "ratio": ratio})
    reasons = {"GR301": "power", "GR302": "thermal"}
    rows = [row for row in of_code(report, "GR301", "GR302") if row["confidence"] == "high"]
    found = {(row["device_uuid"], reasons[row["code"]]): row for row in rows}
    assert found
    assert len(found) == len(rows)
    assert found.keys() <= {gpu for gpu, phases in by_gpu.items() if any(phase["ratio"] > 0.04 for phase in phases)}
    certain = {
        gpu
        for gpu, phases in by_gpu.items()
        if any(phase["ratio"] > 0.06 for phase in phases) and not any(holders[phase["pod"]]["vgpu"] for phase in phases)
    }
    assert certain <= found.keys()
    for gpu in found:
        nodes = {holders[phase["pod"]]["node"] for phase in by_gpu[gpu]}
        gaps = [gap for gap in truth["gaps"] if gap["node"] in nodes]
        is_whole = all(
            ms(gap["end_at"]) < ms(phase["start_at"]) or ms(phase["end_at"]) < ms(gap["start_at"])
            for gap in gaps
            for phase in by_gpu[gpu]
        )
        if is_whole:
            least = sum(phase["seconds"] for phase in by_gpu[gpu] if phase["ratio"] > 0.06)
            most = sum(phase["seconds"] for phase in by_gpu[gpu] if phase["ratio"] > 0.04)
            slack = 2 * plan.step_seconds * len(by_gpu[gpu])
            assert least - slack <= found[gpu]["gpu_hours"] * 3600 <= most + slack


def test_xid_errors_are_found_on_their_gpus_by_class(report: dict[str, list[Row]], truth: dict[str, Any]) -> None:
    classes = {13: "GR402", 31: "GR402", 43: "GR402", 48: "GR401", 63: "GR401", 74: "GR401", 94: "GR401", 119: "GR401"}
    expected = {(classes[xid["code"]], xid["device_uuid"], str(xid["code"])) for xid in truth["xids"]}
    assert {(row["code"], row["device_uuid"], row["detail"]) for row in of_code(report, "GR401", "GR402", "GR403")} == expected


def test_nothing_else_is_found_above_info(report: dict[str, list[Row]]) -> None:
    planted = {"GR101", "GR301", "GR302", "GR310", "GR401", "GR402"}
    others = {(row["code"], row["pod"], row["evidence"]) for row in report["finding"] if row["severity"] != "info"}
    assert {other for other in others if other[0] not in planted} == set()
