"""Sums of facts over pieces and hours, against a slow, obvious oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lake_rows import MIDNIGHT, arrow, owner, sample
from rebuilding import touched

from gpureport.compute.query import build, connection, load, needed
from gpureport.lake import open_lake, views
from gpureport.values.tables import DEVICE_SAMPLE, OWNER_LABEL, TABLE_BY_NAME

QUERIES = load()
TARGETS = ("facts.device_hour", "facts.container_hour")
PARAMS = {"memory_threshold_ratio": 0.5}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's tables and what is made of them, empty."""
    with connection() as con:
        views(con, open_lake(tmp_path_factory.mktemp("lake"), create=True), TABLE_BY_NAME)
        for query in needed(QUERIES, TARGETS):
            build(con, query, PARAMS)
        yield con


def build_facts(
    con: duckdb.DuckDBPyConnection, samples: list[dict[str, Any]], owners: list[dict[str, Any]]
) -> dict[str, list[tuple[Any, ...]]]:
    """Device and container sums over all hours."""
    con.begin()
    try:
        for table, rows in (("device_sample", arrow(DEVICE_SAMPLE, samples)), ("owner_label", arrow(OWNER_LABEL, owners))):
            con.register("given_rows", rows)
            con.execute(f"insert into lake.{table} by name select *, 'c' as cluster from given_rows")
            con.unregister("given_rows")
        for query in touched(QUERIES, TARGETS, ("lake.device_sample", "lake.owner_label")):
            build(con, query, PARAMS)
        sums = ", ".join(f"sum({name})" for name in SUMMED)
        return {
            "device": con.sql(f"select device_uuid, {sums} from facts.device_hour group by all order by all").fetchall(),
            "container": con.sql(f"select pod, {sums} from facts.container_hour group by all order by all").fetchall(),
        }
    finally:
        con.rollback()


SUMMED = (
    "observed_seconds",
    "power_seen_seconds",
    "power_joules",
    "energy_joules",
    "sw_power_cap_seconds",
    "memory_pressure_seconds",
)


def integrate(samples: list[dict[str, Any]], runs: list[tuple[float, float]]) -> list[float | None]:
    """Second by second: what the rows say while one of the runs lasts. Slow, obvious, in whole seconds."""
    found: dict[str, float] = {}
    for row in samples:
        start = round((row["seen_at"] - MIDNIGHT).total_seconds())
        for second in range(start, start + round(row["held_seconds"])):
            if any(low <= second < high for low, high in runs):
                add_second(found, row)
    return [found.get(name) for name in SUMMED]


def add_second(found: dict[str, float], row: dict[str, Any]) -> None:
    def add(name: str, amount: float) -> None:
        found[name] = found.get(name, 0.0) + amount

    add("observed_seconds", 1)
    if row["power_watts"] is not None:
        add("power_seen_seconds", 1)
        add("power_joules", row["power_watts"])
    if row["energy_joules_increase"] is not None:
        add("energy_joules", row["energy_joules_increase"] / row["held_seconds"])
    if row["throttle_reasons"] is not None:
        add("sw_power_cap_seconds", 1 if row["throttle_reasons"] & 0x4 else 0)
    if row["fb_used_bytes"] is not None:
        add("memory_pressure_seconds", 1 if row["fb_used_bytes"] >= 50 else 0)


def held_by_pod(samples: list[dict[str, Any]], runs: list[tuple[str, int, int]]) -> dict[str, list[tuple[int, int]]]:
    """Each pod's runs, and its absences of up to three of the device's steps in which another was named."""
    longest = 3 * median(row["held_seconds"] for row in samples)
    named = {
        pod: stretches({second for who, low, high in runs if who == pod for second in range(low, high)}) for pod, _, _ in runs
    }
    held = {pod: list(found) for pod, found in named.items()}
    for pod, found in named.items():
        others = [stretch for other in named if other != pod for stretch in named[other]]
        for (_, left), (back, _) in pairwise(found):
            if back - left <= longest and any(low < back and high > left for low, high in others):
                held[pod].append((left, back))
    return held


def stretches(seconds: set[int]) -> list[tuple[int, int]]:
    """Seconds as [low, high) without breaks."""
    lows = sorted(second for second in seconds if second - 1 not in seconds)
    highs = sorted(second + 1 for second in seconds if second + 1 not in seconds)
    return list(zip(lows, highs, strict=True))


@st.composite
def device_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows one after another from some second of the day on, cut at full hours, with holes between some."""
    second = draw(st.integers(3400, 3590))
    rows = []
    for _ in range(draw(st.integers(1, 8))):
        second += draw(st.sampled_from([0, 0, 0, 7]))
        held = min(draw(st.integers(1, 60)), 3600 - second % 3600)
        memory = draw(st.none() | st.integers(0, 100))
        rows.append(
            sample(
                "",
                second,
                held,
                power_watts=draw(st.none() | st.integers(1, 500).map(float)),
                energy_joules_increase=draw(st.none() | st.integers(0, 900).map(float)),
                throttle_reasons=draw(st.none() | st.integers(0, 511)),
                fb_used_bytes=None if memory is None else float(memory),
                fb_free_bytes=None if memory is None else 100.0 - memory,
            )
        )
        second += held
    return rows


runs_of_owners = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(3300, 4200), st.integers(1, 400)).map(
        lambda run: (run[0], run[1], run[1] + run[2])
    ),
    max_size=5,
)


# Each example builds the facts once, so it has several devices that know nothing of each other.
@settings(max_examples=4)
@given(devices=st.lists(st.tuples(device_rows(), runs_of_owners), min_size=16, max_size=18))
def test_sums_over_pieces_and_hours_are_the_integral(typed, devices):
    owners = [owner(f"GPU-{n:02}", f"{n}{pod}", *run) for n, (_, runs) in enumerate(devices) for pod, *run in runs]
    found = build_facts(typed, on_devices([rows for rows, _ in devices]), owners)

    assert found["device"] == [(f"GPU-{n:02}", *map(close, integrate(rows, [(0, 86400)]))) for n, (rows, _) in enumerate(devices)]
    by_pod = {
        f"{n}{pod}": integrate(rows, held)
        for n, (rows, runs) in enumerate(devices)
        for pod, held in held_by_pod(rows, runs).items()
    }
    expected = [(pod, *map(close, sums)) for pod, sums in sorted(by_pod.items()) if sums[0] is not None]
    assert found["container"] == expected


@settings(max_examples=2)
@given(devices=st.lists(st.tuples(device_rows(), runs_of_owners), min_size=8, max_size=9))
def test_cuts_by_other_owners_change_no_sum(typed, devices):
    mine = [owner(f"GPU-{n:02}", f"mine {n}", 3500, 3700) for n in range(len(devices))]
    others = [owner(f"GPU-{n:02}", f"{n}{pod}", *run) for n, (_, runs) in enumerate(devices) for pod, *run in runs]
    rows = on_devices([rows for rows, _ in devices])
    alone = build_facts(typed, rows, mine)
    among = build_facts(typed, rows, [*mine, *others])

    assert among["device"] == [(row[0], *map(close, row[1:])) for row in alone["device"]]
    assert [row for row in among["container"] if row[0].startswith("mine")] == [
        (row[0], *map(close, row[1:])) for row in alone["container"]
    ]


def on_devices(each: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all devices, named by their place."""
    return [{**row, "device_uuid": f"GPU-{number:02}"} for number, rows in enumerate(each) for row in rows]


def close(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-6)
