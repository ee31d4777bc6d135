"""Scheduler pressure against an oracle that looks at every minute, over pods and nodes that come, change and go."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, load, needed
from gpureport.lake import open_lake, views
from gpureport.values.tables import TABLE_BY_NAME

QUERIES = load()
MIDNIGHT = datetime(2026, 3, 1)
MINUTES = 150
STAGES = {"gated": "Pending", "unscheduled": "Pending", "refused": "Pending", "bound": "Pending", "placed": "Running"}
STATES = ("schedulable", "cordoned", "not_ready")
GIVEN = (
    "day.snapshot_request",
    "day.claim_request",
    "day.kube_request",
    "day.snapshot_allocatable",
    "day.kube_allocatable",
    "day.state_snapshot",
)

Span = tuple[int, int]


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start = draw(st.integers(0, MINUTES - 2))
    return start, draw(st.integers(start + 1, MINUTES - 1))


ASKS = st.lists(
    st.tuples(spans(), st.sampled_from(sorted(STAGES)), st.integers(1, 8), st.integers(0, 3), st.sampled_from(["n1", "n2"])),
    max_size=6,
)
OFFERS = st.lists(st.tuples(spans(), st.sampled_from(STATES), st.integers(0, 8)), max_size=4)
LOOKS = st.lists(st.integers(0, MINUTES // 15 - 1), max_size=8, unique=True)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Every table that the steps are made of, empty."""
    empty = open_lake(tmp_path_factory.mktemp("lake"), create=True)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("set TimeZone = 'UTC'")
        views(con, empty, TABLE_BY_NAME)
        for query in needed(QUERIES, ["facts.scheduler_hour"]):
            build(con, query, {})
        yield con


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def insert(con: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    names = ", ".join(values)
    con.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(values))})", list(values.values()))


def fill(con: duckdb.DuckDBPyConnection, asks: list[Any], offers: list[Any], looks: list[int]) -> None:
    for table in GIVEN:
        con.execute(f"delete from {table}")
    common = {"cluster": "c", "resource": "nvidia.com/gpu", "is_opencosts": True}
    for number, ((start, end), stage, units, init_units, node) in enumerate(asks):
        has_node = stage in ("bound", "placed")
        insert(
            con, "day.snapshot_request", **common, pod_uid=str(number), node_name=node if has_node else "", phase=STAGES[stage],
            stage=stage, container_units=units, effective_units=units + init_units, start_at=at(start), end_at=at(end),
        )  # fmt: skip
    for number, ((start, end), state, units) in enumerate(offers):
        insert(
            con, "day.snapshot_allocatable", **common, node_name=f"m{number}", state=state, allocatable_units=units,
            start_at=at(start), end_at=at(end),
        )  # fmt: skip
    for number in looks:
        for kind in ("pods", "nodes"):
            insert(
                con, "day.state_snapshot", cluster="c", kind=kind, observed_at=at(15 * number),
                stands_until_at=at(15 * number + 15), is_followed=True,
            )  # fmt: skip
    for table in ("day.request", "day.allocatable", "day.demand_step", "facts.scheduler_hour"):
        build(con, QUERIES[table], {})


def expected(asks: list[Any], offers: list[Any], minute: int) -> dict[str, float | None]:
    """Every gauge at a minute, by going through all that is there then."""
    there = [(stage, units, extra) for (start, end), stage, units, extra, _ in asks if start <= minute < end]
    given = [(state, units) for (start, end), state, units in offers if start <= minute < end]
    pending = [units for stage, units, _ in there if STAGES[stage] == "Pending"]
    waiting = [units + extra for stage, units, extra in there if stage in ("unscheduled", "refused")]
    held = [units + extra for stage, units, extra in there if stage in ("bound", "placed")]
    requested, allocatable = sum(units for _, units, _ in there), sum(units for _, units in given)
    schedulable = sum(units for state, units in given if state == "schedulable")
    return {
        "pending_pod_count": len(pending),
        "pending_request_units": sum(pending),
        "requested_units": requested,
        "allocatable_units": allocatable,
        "requested_allocatable_ratio": requested / allocatable if allocatable else None,
        "gated_pod_count": sum(stage == "gated" for stage, _, _ in there),
        "unscheduled_pod_count": len(waiting),
        "unscheduled_units": sum(waiting),
        "bound_pending_pod_count": sum(stage == "bound" for stage, _, _ in there),
        "bound_pending_units": sum(units + extra for stage, units, extra in there if stage == "bound"),
        "allocated_units": sum(held),
        "schedulable_units": schedulable,
        "cordoned_units": sum(units for state, units in given if state == "cordoned"),
        "not_ready_units": sum(units for state, units in given if state == "not_ready"),
        "demand_schedulable_ratio": (sum(held) + sum(waiting)) / schedulable if schedulable else None,
    }


@settings(max_examples=25)
@given(asks=ASKS, offers=OFFERS, looks=LOOKS)
@example(asks=[], offers=[((0, 1), "schedulable", 1)], looks=[0])
def test_hours_are_the_sums_and_maxima_of_their_minutes(
    con: duckdb.DuckDBPyConnection, asks: list[Any], offers: list[Any], looks: list[int]
) -> None:
    fill(con, asks, offers, looks)
    seconds: dict[tuple[int, str], float] = defaultdict(float)
    integral: dict[tuple[int, str], float] = defaultdict(float)
    largest: dict[tuple[int, str], float] = {}
    for minute in range(MINUTES) if asks or offers else ():
        for gauge, value in expected(asks, offers, minute).items() if minute // 15 in looks else ():
            if value is not None:
                key = minute // 60, gauge
                seconds[key] += 60
                integral[key] += 60 * value
                largest[key] = max(value, largest.get(key, value))

    found = con.execute(
        "select hour(hour_start_at), gauge, observed_seconds, value_unit_seconds, value_units_max from facts.scheduler_hour"
    ).fetchall()

    assert {(hour, gauge): found_seconds for hour, gauge, found_seconds, _, _ in found} == seconds
    assert {(hour, gauge): value for hour, gauge, _, value, _ in found} == pytest.approx(integral)
    assert {(hour, gauge): value for hour, gauge, _, _, value in found} == pytest.approx(largest)
