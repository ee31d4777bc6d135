"""Whatever a GPU's topology: energy closes, is never negative, and is the same hour by hour or at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rebuilding import touched

from gpureport import lake
from gpureport.compute.query import build, load, needed
from gpureport.values.tables import DEVICE_LABEL, DEVICE_SAMPLE, SAMPLE, SERIES, TABLE_BY_NAME, Table

QUERIES = load()
BY_HOUR = ("facts.device_power_hour", "facts.power_hour")
TARGETS = [*BY_HOUR, "period.power", "period.device_power"]
GIVEN = ("facts.ownership", "day.idle_baseline", "day.device_outage", "day.reservation", "facts.xid_event")
SAMPLED = ("lake.device_sample", "lake.device_label", "lake.series", "lake.sample")
MIDNIGHT = datetime(2026, 3, 1)
STEP, HOURS = 600, 2
PARAMS: dict[str, Any] = {
    "memory_threshold_ratio": 0.9,
    "idle_watts": "{}",
    "gpu_models": "[]",
    "since_at": MIDNIGHT,
    "figure_min_coverage_ratio": 0.5,
    "until_at": MIDNIGHT + timedelta(hours=HOURS),
}
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "")


@dataclass
class Topology:
    """Rows of the tables that energy is attributed from."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    owners: list[dict[str, Any]] = field(default_factory=list)
    baselines: list[dict[str, Any]] = field(default_factory=list)
    series: list[dict[str, Any]] = field(default_factory=list)
    readings: list[dict[str, Any]] = field(default_factory=list)


def at(seconds: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=seconds)


def topology(random: Random, with_gaps: bool) -> Topology:
    """One GPU for two hours: whole or split, perhaps anew in the middle; holders that come and go; signals that are missing."""
    found = Topology()
    layouts = [split(random), split(random) if random.random() < 0.3 else None]
    is_split_anew = layouts[1] is not None
    for start in range(0, HOURS * 3600, STEP):
        if random.random() < 0.1:
            continue  # not seen
        layout = (layouts[1] if start >= 3600 else layouts[0]) if is_split_anew else layouts[0]
        resets = is_split_anew and start == 3600
        found.samples += scrape(random, start, layout or {}, with_gaps, resets)
    lives = [(layouts[0], 0, 3600 if is_split_anew else 7200), (layouts[1], 3600, 7200)]
    for layout, since, until in lives:
        for number, profile in (layout or {}).items():
            found.labels.append(label(number, profile, since, until))
        if layout is not None:
            found.owners += holders(random, layout, since, until)
    found.labels.append(label("", "", 0, 7200))
    pods = sorted({owner["pod"] for owner in found.owners})
    for number, pod in enumerate(pods):
        if random.random() < 0.6:
            found.series.append(pod_series(number, pod))
            found.readings += readings(random, number, [0.0, 0.2, 0.6])
        if random.random() < 0.7:
            found.series.append(kepler_series(100 + number, pod))
            found.readings += readings(random, 100 + number, [5.0, 20.0, 60.0])
    names = {",".join(sorted(profile or "?" for profile in layout.values())) for layout in layouts if layout}
    if random.random() < 0.7:
        watts = float(random.choice([0, 40, 82.5, 400]))
        found.baselines = [{"layout": name, "idle_watts": watts} for name in sorted({"", *names})]
    return found


def split(random: Random) -> dict[str, str]:
    """Instances with their profiles; none half the time."""
    count = random.choice([0, 0, 0, 1, 2, 3, 7])
    return {str(number): random.choice(PROFILES) for number in range(1, count + 1)}


def scrape(random: Random, start: int, layout: dict[str, str], with_gaps: bool, resets: bool) -> list[dict[str, Any]]:
    def some(value: Any) -> Any:
        return value if random.random() < 0.8 else None

    counter = random.random() < 0.7
    breaks = counter and with_gaps and random.random() < 0.2
    board = {
        "power_watts": some(round(random.uniform(30, 700), 3)),
        "gpu_util_ratio": some(random.choice([0.0, 0.0, 0.5])) if not layout else None,
        "pcie_rx_bytes_per_second": some(random.choice([0.0, 2e8])),
        "energy_joules": 1000.0 if counter else None,
        "energy_joules_increase": None if breaks or not counter else round(random.uniform(0, 4e5), 3),
        "energy_joules_gap_increase": round(random.uniform(0, 1e6), 3)
        if with_gaps and (resets or random.random() < 0.2)
        else None,
        "gr_engine_active_ratio": some(random.choice([0.0, 0.00006, 0.7])) if not layout else None,
    }
    rows = [row("", start, board)]
    for number in layout:
        activity = {
            "gr_engine_active_ratio": some(random.choice([0.0, 0.3, 1.2])),
            "sm_active_ratio": some(random.choice([0.0, 0.9])),
        }
        if random.random() < 0.9:
            rows.append(row(number, start, activity))
    return rows


def row(instance: str, start: int, signals: dict[str, Any]) -> dict[str, Any]:
    times = {"seen_at": at(start), "held_seconds": float(STEP), "is_carried": False, "is_step_guessed": False, "joined_count": 0}
    return {"device_uuid": "GPU-a", "gpu_instance_id": instance, **times, **signals}


def label(instance: str, profile: str, since: int, until: int) -> dict[str, Any]:
    texts = dict.fromkeys(DEVICE_LABEL.schema.names, "")
    times = {"start_at": at(since), "end_at": at(until)}
    return {**texts, "device_uuid": "GPU-a", "gpu_instance_id": instance, "gpu_instance_profile": profile, **times}


def holders(random: Random, layout: dict[str, str], since: int, until: int) -> list[dict[str, Any]]:
    found = []
    for number in range(random.choice([0, 1, 1, 2, 4])):
        start, end = sorted(random.sample(range(since, until + 1, 100), 2))
        instance = random.choice(list(layout)) if layout else ""
        names = {"namespace": "ns", "pod": f"pod-{since}-{number // 2}", "pod_uid": "", "container": f"c{number}"}
        found.append({"device_uuid": "GPU-a", "gpu_instance_id": instance, **names, "start_at": at(start), "end_at": at(end)})
    return found


def pod_series(number: int, pod: str) -> dict[str, Any]:
    texts = {name: "" for name in SERIES.schema.names if SERIES.schema.field(name).type == pa.string()}
    names = {"metric": "DCGM_FI_DEV_GPU_UTIL", "signal": "gpu_util_ratio", "scope": "pod", "device_uuid": "GPU-a"}
    return {**texts, **names, "series_id": number, "namespace": "ns", "pod": pod}


def kepler_series(number: int, pod: str) -> dict[str, Any]:
    names = {"metric": "kepler_pod_gpu_watts", "signal": "kepler_active_watts", "device_uuid": ""}
    return {**pod_series(number, pod), **names}


def readings(random: Random, number: int, values: list[float]) -> list[dict[str, Any]]:
    found = []
    for start in range(0, HOURS * 3600, STEP):
        if random.random() < 0.8:
            value = random.choice(values)
            found.append(
                {"series_id": number, "seen_at": at(start), "value": value, "held_seconds": float(STEP), "is_carried": False}
            )
    return found


def drawn_of(seeds: list[int], with_gaps: bool) -> list[Topology]:
    """Topologies that can stand in one cluster: each is of a GPU, pods and series of its own."""
    return [own(topology(Random(seed), with_gaps), number) for number, seed in enumerate(seeds)]


def own(drawn: Topology, number: int) -> Topology:
    for rows in (drawn.samples, drawn.labels, drawn.owners, drawn.series, drawn.readings):
        for each in rows:
            if each.get("device_uuid"):
                each["device_uuid"] = f"GPU-{number}"
            if each.get("pod"):
                each["pod"] += f"-{number}"
            if "series_id" in each:
                each["series_id"] += 1000 * number
    drawn.baselines = [{"device_uuid": f"GPU-{number}", "idle_source": "observed", **each} for each in drawn.baselines]
    return drawn


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Every table, empty."""
    empty = lake.open_lake(tmp_path_factory.mktemp("lake"), create=True)
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; set threads = 1")
        lake.views(con, empty, TABLE_BY_NAME)
        for query in needed(QUERIES, [*TARGETS, *GIVEN]):
            build(con, query, PARAMS)
        yield con


def computed(
    con: duckdb.DuckDBPyConnection, drawn: list[Topology], since: int = 0, until: int = HOURS * 3600
) -> list[dict[str, list[Any]]]:
    """Of each topology the hours of its GPU and of who held it, made of what all show from one full hour to another."""
    con.begin()
    try:
        within = [each for one in drawn for each in one.samples if at(since) <= each["seen_at"] < at(until)]
        held = [
            {**each, "start_at": max(each["start_at"], at(since)), "end_at": min(each["end_at"], at(until))}
            for one in drawn
            for each in one.owners
        ]
        insert(con, "lake.device_sample", typed(DEVICE_SAMPLE, within))
        insert(con, "lake.device_label", typed(DEVICE_LABEL, [each for one in drawn for each in one.labels]))
        insert(con, "lake.series", typed(SERIES, [each for one in drawn for each in one.series]))
        insert(con, "lake.sample", typed(SAMPLE, [each for one in drawn for each in one.readings]))
        insert_rows(con, "facts.ownership", [each for each in held if each["start_at"] < each["end_at"]])
        insert_rows(con, "day.idle_baseline", [each for one in drawn for each in one.baselines])
        for query in touched(QUERIES, TARGETS, (*SAMPLED, *GIVEN)):
            build(con, query, PARAMS)
        rows = {table: con.sql(f"from {table} order by all").to_arrow_table().to_pylist() for table in BY_HOUR}
        return [
            {table: [row for row in found if row["device_uuid"] == f"GPU-{number}"] for table, found in rows.items()}
            for number in range(len(drawn))
        ]
    finally:
        con.rollback()


def typed(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    full = pa.Table.from_pylist([{name: each.get(name) for name in table.schema.names} for each in rows], schema=table.schema)
    return full.append_column("cluster", pa.array(["c"] * len(rows), pa.string()))


def insert(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    con.register("_rows", rows)
    con.execute(f"insert into {name} by name from _rows")
    con.unregister("_rows")


def insert_rows(con: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        insert(con, name, pa.Table.from_pylist([{"cluster": "c", **each} for each in rows]))


# Planning the queries costs more than running them: an example is several GPUs.
SLOW = settings(max_examples=2)
SEEDS = st.lists(st.integers(0, 2**32), min_size=9, max_size=9, unique=True)


@SLOW
@given(seeds=SEEDS)
def test_energy_closes_and_is_never_negative(con: duckdb.DuckDBPyConnection, seeds: list[int]) -> None:
    for tables in computed(con, drawn_of(seeds, with_gaps=True)):
        assert_closes(tables)


def assert_closes(tables: dict[str, list[Any]]) -> None:
    """The parts of a GPU's hour are the whole, and none is below zero."""
    for hour in tables["facts.device_power_hour"]:
        if hour["measured_joules"] is None:
            continue
        parts = [hour["idle_joules"] or 0.0, hour["attributed_joules"], hour["unattributed_joules"]]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(hour["measured_joules"], rel=1e-9, abs=1e-6)
        of_holders = [each for each in tables["facts.power_hour"] if each["hour_start_at"] == hour["hour_start_at"]]
        attributed = sum((each["active_joules"] or 0) + (each["allocated_idle_joules"] or 0) for each in of_holders)
        assert attributed == pytest.approx(hour["attributed_joules"], rel=1e-9, abs=1e-6)
        assert sum(each["idle_joules"] or 0 for each in of_holders) <= (hour["idle_joules"] or 0) * (1 + 1e-9) + 1e-6
    for each in tables["facts.power_hour"]:
        names = (
            "active_joules",
            "active_joules_unweighted",
            "active_joules_kepler",
            "allocated_idle_joules",
            "idle_joules",
            "active_watts_max",
        )
        assert min((each[name] for name in names if each[name] is not None), default=0) >= -1e-9
        above = (each["active_joules"] or 0, each["allocated_idle_joules"] or 0)
        assert each["measured_seconds"] is None or each["active_seconds"] + each["held_seconds"] == pytest.approx(
            each["measured_seconds"]
        )
        assert each["measured_seconds"] is not None or above == (0, 0)


@SLOW
@given(seeds=SEEDS)
def test_hour_by_hour_is_the_same_as_at_once(con: duckdb.DuckDBPyConnection, seeds: list[int]) -> None:
    drawn = drawn_of(seeds, with_gaps=False)
    for number, each in enumerate(drawn):
        if not each.baselines:  # the lowest power of a day is the day's
            each.baselines = [{"device_uuid": f"GPU-{number}", "idle_source": "observed", "layout": "", "idle_watts": 50.0}]
            each.labels = [label for label in each.labels if not label["gpu_instance_id"]]
    at_once = computed(con, drawn)
    hours = [computed(con, drawn, hour * 3600, (hour + 1) * 3600) for hour in range(HOURS)]
    for number, whole in enumerate(at_once):
        for table in BY_HOUR:
            assert [
                {name: close(value) for name, value in each.items()} for each in sorted(whole[table], key=hour_first)
            ] == sorted((each for hour in hours for each in hour[number][table]), key=hour_first)


def hour_first(each: dict[str, Any]) -> Any:
    return each["hour_start_at"], *(str(each.get(name)) for name in ("namespace", "pod", "container", "gpu_instance_id"))


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-6) if isinstance(value, float) else value
