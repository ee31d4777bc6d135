"""A report on the simulated cluster finds what was planted, for as long as it was planted, and nothing else above info."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.lake import open_lake
from gpureport.report_tables import ReportSettings, report_tables
from gpureport.simulate import SimulationPlan
from tests.simulate.conftest import ms

Row = dict[str, Any]
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def report(plan: SimulationPlan, simulated: Path) -> dict[str, list[Row]]:
    """Rows of the tables that the tests look at, over both days."""
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        report_tables(con, open_lake(simulated), plan.window, ReportSettings())
        tables = ("finding", "gpu_hour_balance", "gpu_hour_ledger")
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


def test_idle_holders_and_no_others_are_found_idle(
    report: dict[str, list[Row]], plan: SimulationPlan, truth: dict[str, Any]
) -> None:
    found = {row["pod"] for row in of_code(report, "GR101")}
    own = [holder for holder in truth["holders"] if not holder["vgpu"]]
    assert found <= {holder["pod"] for holder in own if holder["is_idle"]}
    whole = whole_gpus(truth)
    long = {
        holder["pod"]
        for holder in own
        if holder["is_idle"] and held_hours(plan, holder) > 1.1 and holder["devices"][0]["device_uuid"] in whole
    }
    assert long
    assert long <= found


def test_an_idle_holder_costs_the_hours_for_which_it_held(
    report: dict[str, list[Row]], plan: SimulationPlan, truth: dict[str, Any]
) -> None:
    holders = {holder["pod"]: holder for holder in truth["holders"]}
    whole, compared = whole_gpus(truth), 0
    for row in of_code(report, "GR101"):
        holder = holders[row["pod"]]
        if holder["devices"][0]["device_uuid"] in whole:
            gaps = sum(gap["missing_scrapes"] for gap in truth["gaps"] if gap["node"] == holder["node"]) / 60
            expected = held_hours(plan, holder) * len(holder["devices"])
            assert expected - gaps * len(holder["devices"]) - 0.1 <= row["gpu_hours"] <= expected + 0.1
            compared += 1
    assert compared >= 3


def test_throttled_phases_and_no_others_are_found(
    report: dict[str, list[Row]], plan: SimulationPlan, truth: dict[str, Any]
) -> None:
    holders = {holder["pod"]: holder for holder in truth["holders"]}
    share = {
        (phase["pod"], phase["device_uuid"], phase["reason"]): phase["seconds"] / 3600 / held_hours(plan, holders[phase["pod"]])
        for phase in truth["throttled"]
        if held_hours(plan, holders[phase["pod"]]) > 0.2
    }
    reasons = {"GR301": "power", "GR302": "thermal"}
    found = {
        (row["pod"], row["device_uuid"], reasons[row["code"]]): row
        for row in of_code(report, "GR301", "GR302")
        if row["confidence"] == "high"
    }
    assert found
    assert found.keys() <= {key for key, ratio in share.items() if ratio > 0.04}
    assert {key for key, ratio in share.items() if ratio > 0.06 and not holders[key[0]]["vgpu"]} <= found.keys()
    for phase in truth["throttled"]:
        key = (phase["pod"], phase["device_uuid"], phase["reason"])
        gaps = [gap for gap in truth["gaps"] if gap["node"] == holders[phase["pod"]]["node"]]
        is_whole = all(ms(gap["end_at"]) < ms(phase["start_at"]) or ms(phase["end_at"]) < ms(gap["start_at"]) for gap in gaps)
        if key in found and is_whole:
            assert found[key]["gpu_hours"] * 3600 == pytest.approx(phase["seconds"], abs=2 * plan.step_seconds)


def test_xid_errors_are_found_on_their_gpus_by_class(report: dict[str, list[Row]], truth: dict[str, Any]) -> None:
    classes = {13: "GR402", 31: "GR402", 43: "GR402", 48: "GR401", 63: "GR401", 74: "GR401", 94: "GR401", 119: "GR401"}
    expected = {(classes[xid["code"]], xid["device_uuid"], str(xid["code"])) for xid in truth["xids"]}
    assert {(row["code"], row["device_uuid"], row["detail"]) for row in of_code(report, "GR401", "GR402", "GR403")} == expected


def test_nothing_else_is_found_above_info(report: dict[str, list[Row]]) -> None:
    planted = {"GR101", "GR301", "GR302", "GR310", "GR401", "GR402"}
    others = {(row["code"], row["pod"], row["evidence"]) for row in report["finding"] if row["severity"] != "info"}
    assert {other for other in others if other[0] not in planted} == set()
