"""The second screen: each panel says what the table holds, or one sentence what would fill it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpureport.query import Query, load
from gpureport.report.ledger import BUCKETS, balances, total
from gpureport.report.panels import Panel, panels, waiting
from gpureport.report.results import Result
from gpureport.report.tiles import tiles

from .conftest import SCRIPT, a_header

QUERIES = load()
MONDAY = datetime(2026, 3, 2)
COURSE = {
    "usable_gpu_hours": 8.0,
    "unnamed_gpu_hours": 0.0,
    "held_gpu_hours": 6.0,
    "active_gpu_hours": 4.0,
    "effective_gpu_hours": 1.0,
}


def a_query(name: str) -> Query:
    """The table's query, or one for a table that is not here yet."""
    return QUERIES.get(f"report.{name}") or Query(f"report.{name}", Path(name), "", (), (), (), "", {}, "", "")


def tables(**rows: Sequence[Mapping[str, Any]]) -> dict[str, Result]:
    """Report tables with these rows."""
    return {name: Result(a_query(name), pl.DataFrame(list(found)), {}) for name, found in rows.items()}


def panel(anchor: str, found: Mapping[str, Result]) -> Panel:
    return next(each for each in panels(found) if each.anchor == anchor)


def test_without_tables_each_panel_says_what_would_fill_it() -> None:
    for each in panels({}):
        assert each.missing and not each.chart and each.listing is None


def test_the_course_is_drawn_where_there_is_one_and_names_what_pods_wait_for() -> None:
    hours = [{"gpu_model": "H100", "hour_start_at": MONDAY + timedelta(hours=hour), **COURSE} for hour in range(6)]
    at = {"hour_start_at": MONDAY, "demand_observed_seconds": 1800.0, "gated_pod_count_avg": 6.0}
    pressure = [
        {
            **at,
            "resource": "nvidia.com/gpu",
            "schedulable_units_avg": None,
            "allocatable_units_avg": 8.0,
            "unscheduled_units_avg": 2.0,
        },
        {
            **at,
            "resource": "example.com/nic",
            "schedulable_units_avg": 4.0,
            "allocatable_units_avg": 9.0,
            "unscheduled_units_avg": 9.0,
        },
    ]
    assert panel("supply", tables(gpu_hour_course=hours[:2])).chart == ""
    quiet, asked = (panel("supply", tables(gpu_hour_course=hours, **more)) for more in ({}, {"scheduler_pressure": pressure}))
    assert quiet.chart.startswith("<svg") and "did not get" not in quiet.sentence
    assert "nvidia.com/gpu" in asked.sentence
    assert ":00<" in quiet.chart and " AM<" not in quiet.chart  # hours of UTC, as everywhere on the page
    assert len(asked.key) == len(quiet.key) + 1
    assert waiting(tables(scheduler_pressure=pressure)).device_hours == 1.0  # 2 for the half hour that was observed
    told = {tile.title: tile.detail for tile in tiles(tables(scheduler_pressure=pressure), a_header(), None, [])}
    assert told["Waited for"] == "of nvidia.com/gpu, by pods without a node; not by gated pods, 3 pod-hours"


def test_gpus_of_which_nobody_knows_whose_they_are_are_not_drawn_as_nobodys() -> None:
    hours = [{"gpu_model": "H100", "hour_start_at": MONDAY + timedelta(hours=hour), **COURSE} for hour in range(6)]
    supply = panel("supply", tables(gpu_hour_course=[*hours[:5], {**hours[5], "unnamed_gpu_hours": 2.0}]))
    assert supply.key[:2] == (("area unnamed", "unknown whose"), ("area usable", "nobody's"))
    assert "var(--unknown)" in supply.chart
    assert "05:00: GPUs 8 usable, 6 of which it is known whose they were, 6 held, 4 active, 1 effective" in supply.chart
    assert "var(--unknown)" not in panel("supply", tables(gpu_hour_course=hours)).chart


def test_hours_of_which_nobody_knows_who_held_gpus_are_not_told_as_hours_without_idle_holders() -> None:
    known = {"hour_count": 30, "usable_gpu_hours": 10.0, "unnamed_gpu_hours": 5.0, "allocated_idle_gpu_hours": 1.0}
    rows = [{"weekday": day, "hour_of_day": 3, **known, "held_idle_ratio": 0.2} for day in (1, 2)]
    unknown = {"weekday": 3, "hour_of_day": 3, **known, "held_idle_ratio": None}
    chart = panel("week", tables(hour_of_week=[*rows, unknown])).chart
    assert "Monday 03:00: 20.0 % held and idle, 1 of 5 GPU-h" in chart
    assert "Wednesday 03:00" not in chart
    assert panel("week", tables(hour_of_week=[unknown])).chart == ""


def test_the_week_names_its_worst_hour() -> None:
    worst, others = [(1, 9, 2.0), (6, 21, 5.0)], [(day, hour, 0.5 * day - 1) for day in (2, 4) for hour in range(24)]
    cells = [
        {
            "weekday": day,
            "hour_of_day": hour,
            "hour_count": 1,
            "usable_gpu_hours": 10.0,
            "allocated_idle_gpu_hours": idle,
            "unnamed_gpu_hours": 0.0,
        }
        for day, hour, idle in worst + others
    ]
    week = panel(
        "week", tables(hour_of_week=[{**each, "held_idle_ratio": each["allocated_idle_gpu_hours"] / 10} for each in cells])
    )
    assert week.alternative == "Held and not active by weekday and hour: most, 50.0 %, on Saturday at 21:00"


def test_who_holds_gpus_for_nothing_is_told_with_the_few_that_matter_and_names_stay_text() -> None:
    rows = [{"namespace": name, "idle_gpu_hours": hours} for name, hours in [("b", 1.0), (SCRIPT, 6.0), ("a", 3.0)]]
    idle = panel("idle", tables(idle_by_holder=rows))
    assert idle.key == (("", "2 namespaces of 3 hold four fifths of 10 GPU-h"),)  # 6 of 10 are not enough, 6 + 3 are
    assert "<script" not in idle.chart and "&lt;script&gt;" in idle.chart


def test_the_bridge_is_drawn_only_where_every_step_is_known() -> None:
    steps = [("before", 1, 100.0), ("new", 2, 30.0), ("ended", 3, -10.0), ("after", 4, 120.0)]
    rows = [{"measure": "allocated", "step": step, "position": at, "gpu_hours": hours} for step, at, hours in steps]
    drawn = panel("changed", tables(gpu_hour_bridge=rows))
    assert all(f">{told}<" in drawn.chart for told in ("+30", "-10", "120"))
    assert panel("changed", tables(gpu_hour_bridge=[*rows[:1], {**rows[1], "gpu_hours": None}])).chart == ""


def test_demand_is_drawn_by_model_where_something_is_forecast() -> None:
    seen = {"gpu_model": "H100", "day": date(2026, 3, 1), "kind": "observed", "held_gpu_hours": 20.0, "usable_gpu_hours": 24.0}
    hours = dict.fromkeys(("low_gpu_hours", "expected_gpu_hours", "high_gpu_hours"))
    ahead = {**dict.fromkeys(seen), **seen, "day": date(2026, 3, 2), "kind": "forecast", **dict.fromkeys(hours, 21.0)}
    assert "trend" not in {each.anchor for each in panels(tables(demand_trend=[{**seen, **hours}]))}
    assert ">H100<" in panel("trend", tables(demand_trend=[{**seen, **hours}, ahead])).chart


def test_quotas_are_bars_with_a_mark() -> None:
    quota = {
        "quota": "team-a",
        "resource": "nvidia.com/gpu",
        "is_parent": False,
        "guaranteed_gpu_hours": 10.0,
        "demanded_gpu_hours": 12.0,
        "delivered_gpu_hours": 8.0,
    }
    assert ">team-a<" in panel("quotas", tables(quota_fair_share=[quota])).chart
    for left_out in ({"demanded_gpu_hours": None}, {"is_parent": True}):
        assert panel("quotas", tables(quota_fair_share=[{**quota, **left_out}])).chart == ""


def test_a_list_shows_the_largest_first_and_says_how_many_there_are() -> None:
    rows = [{"namespace": f"n{number}", "change": "grew", "allocated_change_gpu_hours": number - 9.0} for number in range(12)]
    found = panel("about-namespace_change", tables(namespace_change=rows)).listing
    assert found is not None
    assert found.row_count == 12
    assert [row[0] for row in found.rows][:2] == ["n0", "n1"]  # -9 and -8 are the largest changes
    assert len(found.rows) == 8


def test_a_tile_has_its_change_against_the_window_before() -> None:
    now = {"dimension": "cluster", "value": "c", "device_count": 1, "capacity_gpu_hours": 100.0, "difference_gpu_hours": 0.0}
    hours = dict.fromkeys(("allocated_ineffective", "allocated_busy", "reserved_idle", "stranded", "unknown", "unavailable"), 0.0)
    parts = {
        f"{name}_gpu_hours": found for name, found in {**hours, "effective": 30.0, "allocated_idle": 20.0, "free": 50.0}.items()
    }
    before = {**parts, "period": "before", "capacity_gpu_hours": 200.0, "effective_gpu_hours": 80.0, "energy_joules": None}

    found = tables(
        gpu_hour_balance=[{**now, **parts}], period=[before, {**before, **parts, "period": "now", "capacity_gpu_hours": 100.0}]
    )
    whole = total(balances(found["gpu_hour_balance"], "cluster"))
    told = {tile.title: (tile.value, tile.trend) for tile in tiles(found, a_header(), whole, [])}
    # Allocated: 50 of 100, before (80 + 20) of 200; effective 30 against 80 / 200; free 50 against 50 / 200.
    assert told["Allocated"] == ("50.0 %", "as before")
    assert told["Effective"] == ("30.0 %", "▼ 10.0 points")
    assert told["Free"] == ("50.0 %", "▲ 25.0 points")


REQUEST = {"cluster": "c", "gpu_model": "H100", "resource": "nvidia.com/gpu", "requested_units": 1.0}


def test_waits_demand_and_cost_have_their_change_where_like_is_held_against_like() -> None:
    period = {
        "cluster": "c",
        "period": "now",
        **{f"placing_{name}": REQUEST[name] for name in ("gpu_model", "resource", "requested_units")},
        "placing_seconds_p95": 60.0,
        "demanded_resource": "nvidia.com/gpu",
        "unscheduled_unit_hours": 3.0,
        "allocated_cost": 7.0,
        "energy_joules": None,
        **dict.fromkeys(("capacity_gpu_hours", *(f"{each.name}_gpu_hours" for each in BUCKETS)), 1.0),
    }
    before = {**period, "period": "before", "placing_seconds_p95": 40.0, "unscheduled_unit_hours": 0.0, "allocated_cost": None}
    hour = {"hour_start_at": MONDAY, "resource": "nvidia.com/gpu", "schedulable_units_avg": 8.0, "allocatable_units_avg": 8.0}
    found = tables(
        pod_wait=[{**REQUEST, "placed_pod_count": 9, "placing_seconds_p95": 60.0}],
        scheduler_pressure=[
            {**hour, "unscheduled_units_avg": 3.0, "demand_observed_seconds": 3600.0, "gated_pod_count_avg": None}
        ],
        cost=[{"allocated_cost": 7.0, "allocated_gpu_hours": 2.0}],
    )
    reasons = {"unknown_reasons": ({"allocated_cost": "not_configured"}, {})}
    compared = {"period": Result(a_query("period"), pl.DataFrame([before, period], infer_schema_length=None), reasons)}
    told = {tile.title: tile.trend for tile in tiles({**found, **compared}, a_header(), None, [])}
    assert told["p95 wait"] == "▲ 50.0 %"  # 60 s after 40
    assert told["Waited for"] == "▲ from 0"
    assert told["Cost"] == "before: — (no price or factor is configured for it (prices, carbon))"
    assert not any(tile.trend for tile in tiles(found, a_header(), None, []))

    others = {"period": Result(a_query("period"), compared["period"].rows.with_columns(placing_requested_units=8.0), reasons)}
    assert {tile.title: tile.trend for tile in tiles({**found, **others}, a_header(), None, [])}["p95 wait"] == ""


@pytest.mark.parametrize("gpu_hours", [None, 3.0])
def test_the_wait_is_that_of_the_size_which_most_pods_asked_for(gpu_hours: float | None) -> None:
    row = {**REQUEST, "placed_pod_count": 9, "placing_seconds_p95": 5400.0}
    other = {**row, "requested_units": 8.0, "placed_pod_count": 2, "placing_seconds_p95": gpu_hours}
    told = {tile.title: (tile.value, tile.detail) for tile in tiles(tables(pod_wait=[other, row]), a_header(), None, [])}
    assert told["p95 wait"] == ("1 h 30 min", "9 pods asking for 1 × nvidia.com/gpu")


def test_what_cannot_be_forecast_is_a_sentence_and_no_table() -> None:
    unknown = dict.fromkeys(("daily_usable_gpu_hours", "runway_day_count", "backtest_error_ratio", "naive_error_ratio"))
    short = {"gpu_model": "L4", "sentence": "no forecast", "daily_held_gpu_hours": 5.0, "horizon_day_count": None, **unknown}
    alone = panel("about-runway", tables(runway=[short]))
    assert alone.listing is None and "28 days" in alone.missing
    beside = panel("about-runway", tables(runway=[short, {**short, "gpu_model": "A40", "horizon_day_count": 28}])).listing
    assert beside is not None and [row[0] for row in beside.rows] == ["A40"]


def test_hours_that_all_hold_alike_are_not_told_as_four_fifths() -> None:
    rows = [{"namespace": name, "idle_gpu_hours": 5.0} for name in "ab"]
    assert panel("idle", tables(idle_by_holder=rows)).key == (("", "2 namespaces: all of 10 GPU-h"),)
