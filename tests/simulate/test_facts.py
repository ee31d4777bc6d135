"""From the simulated lake to facts: what was planted comes out, container by container."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.lake import open_lake, views
from gpureport.simulate import SimulationPlan
from tests.simulate.conftest import ms

Row = dict[str, Any]
Key = tuple[str, str, str]


@pytest.fixture(scope="module")
def facts(simulated: Path) -> dict[Key, Row]:
    """Sums over both days by pod, device and instance."""
    with duckdb.connect() as con:
        views(con, open_lake(simulated), ["facts/container_hour"])
        found = con.sql(
            """
            select
                pod, device_uuid, gpu_instance_id, sum(observed_seconds) as observed_seconds,
                sum(power_violation_seconds + coalesce(power_violation_gap_seconds, 0)) as power_lost_seconds,
                sum(thermal_violation_seconds + coalesce(thermal_violation_gap_seconds, 0)) as thermal_lost_seconds,
                sum(sw_power_cap_seconds) as power_seconds, sum(sw_thermal_seconds) as thermal_seconds,
                sum(gr_engine_active_ratio_seconds) as active_seconds, sum(xid_event_count) as xid_event_count,
                max(memory_used_ratio_max) as memory_used_ratio_max, any_value(sharing_mode) as sharing_mode
            from facts.container_hour group by all
            """
        ).to_arrow_table()
    return {(row["pod"], row["device_uuid"], row["gpu_instance_id"]): row for row in found.to_pylist()}


def _held(truth: dict) -> list[tuple[Row, Row]]:
    """Every holder with each of its devices."""
    return [(holder, device) for holder in truth["holders"] for device in holder["devices"]]


def _is_near_gap(truth: dict, node: str, start_ms: int, end_ms: int) -> bool:
    """Whether a gap of the node touches the interval or begins a step after it: the last sample then holds three steps."""
    gaps = [(ms(gap["start_at"]), ms(gap["end_at"])) for gap in truth["gaps"] if gap["node"] == node]
    return any(low <= end_ms + 60_000 and start_ms <= high for low, high in gaps)


def test_throttled_time_and_lost_time_are_the_planted_ones(facts: dict[Key, Row], truth: dict) -> None:
    node_of = {each["device_uuid"]: each["node"] for each in truth["devices"]}
    compared = 0
    for phase in truth["throttled"]:
        start, end = ms(phase["start_at"]), ms(phase["end_at"])
        if _is_near_gap(truth, node_of[phase["device_uuid"]], start, end):
            continue
        row = facts[phase["pod"], phase["device_uuid"], ""]
        assert row[f"{phase['reason']}_lost_seconds"] == pytest.approx(phase["lost_seconds"], rel=1e-6)
        assert row[f"{phase['reason']}_seconds"] - phase["seconds"] in (0, pytest.approx(0), pytest.approx(60))
        compared += 1
    assert compared >= 5


def test_containers_without_a_planted_phase_lost_nothing(facts: dict[Key, Row], truth: dict) -> None:
    throttled = {(phase["pod"], phase["device_uuid"]) for phase in truth["throttled"]}
    for (pod, device, _), row in facts.items():
        if (pod, device) not in throttled and row["sharing_mode"] == "exclusive":
            assert (row["power_seconds"], row["thermal_seconds"]) == (0, 0)


def test_xid_events_are_with_those_who_held_the_device(facts: dict[Key, Row], truth: dict) -> None:
    expected = {
        (holder["pod"], device["device_uuid"])
        for xid in truth["xids"]
        for holder, device in _held(truth)
        if device["device_uuid"] == xid["device_uuid"]
        and ms(holder["start_at"]) <= ms(xid["at"])
        and (holder["end_at"] is None or ms(xid["at"]) < ms(holder["end_at"]))
    }
    found = {(pod, device) for (pod, device, _), row in facts.items() if row["xid_event_count"]}
    assert found == expected


def test_memory_of_exclusive_holders_and_idleness_are_as_told(facts: dict[Key, Row], truth: dict) -> None:
    compared = idle = 0
    for holder, device in _held(truth):
        row = facts.get((holder["pod"], device["device_uuid"], device["gpu_instance_id"]))
        if row is None or holder["vgpu"]:
            continue
        assert row["memory_used_ratio_max"] == pytest.approx(device["memory_used_ratio"], abs=1e-5)
        assert (row["active_seconds"] == 0) == holder["is_idle"]
        compared, idle = compared + 1, idle + holder["is_idle"]
    assert compared > 50
    assert idle


def test_holders_are_observed_for_as_long_as_they_held(facts: dict[Key, Row], plan: SimulationPlan, truth: dict) -> None:
    compared = 0
    for holder, device in _held(truth):
        start = max(ms(holder["start_at"]), plan.window.start_ms)
        end = ms(holder["end_at"]) if holder["end_at"] else plan.window.end_ms
        if _is_near_gap(truth, holder["node"], start, end):
            continue
        row = facts.get((holder["pod"], device["device_uuid"], device["gpu_instance_id"]))
        if row is not None:
            assert row["observed_seconds"] == pytest.approx((end - start) / 1000, abs=plan.step_seconds)
            compared += 1
    assert compared > 20


def test_sharing_and_splitting_are_seen(facts: dict[Key, Row], truth: dict) -> None:
    split = {each["device_uuid"] for each in truth["devices"] if each["gpu_instance_id"]}
    modes = {"shared": set(), "mig": set(), "exclusive": set()}
    for holder, device in _held(truth):
        row = facts.get((holder["pod"], device["device_uuid"], device["gpu_instance_id"]))
        if row is not None:
            kind = "shared" if holder["vgpu"] else "mig" if device["device_uuid"] in split else "exclusive"
            modes[kind].add(row["sharing_mode"])
    assert modes == {"shared": {"time-sliced"}, "mig": {"mig"}, "exclusive": {"exclusive"}}


def test_distributions_are_a_small_part_of_the_facts(simulated: Path) -> None:
    """At most 15 % of the bytes."""
    lake = open_lake(simulated)
    sizes = {
        name: sum(file.stat().st_size for part in lake.partitions(name) for file in part.files)
        for name in lake.tables()
        if name.startswith("facts/")
    }
    assert sizes["facts/value_hour"] > 0 < sizes["facts/value_day"]
    assert sizes["facts/value_hour"] + sizes["facts/value_day"] < 0.15 * sum(sizes.values())
