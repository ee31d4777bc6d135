"""From a lake of a few rows to facts and report tables; the sums against a slow, obvious oracle."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport import compute
from gpureport.compute import ComputeSettings, compute_day, connection
from gpureport.errors import LakeError, QueryError
from gpureport.lake import Lake, open_lake, views
from gpureport.query import build, load, needed
from gpureport.report_tables import ReportSettings, report_tables
from gpureport.tables import DEVICE_LABEL, DEVICE_SAMPLE, OWNER_LABEL, TABLE_BY_NAME, Table
from gpureport.window import Window

DAY = date(2026, 3, 1)
MIDNIGHT = datetime(2026, 3, 1)
WINDOW = Window(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


def at(seconds: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=seconds)


def sample(device: str, start: float, held: float, **signals: Any) -> dict[str, Any]:
    row = {"device_uuid": device, "gpu_instance_id": "", "seen_at": at(start), "held_seconds": held}
    return {**row, "is_carried": False, "is_step_guessed": False, "joined_count": 0, **signals}


def owner(device: str, pod: str, start: float, end: float) -> dict[str, Any]:
    names = {"namespace": "ns", "pod": pod, "pod_uid": "", "container": "main"}
    return {"device_uuid": device, "gpu_instance_id": "", **names, "start_at": at(start), "end_at": at(end)}


def arrow(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in table.schema.names} for row in rows], schema=table.schema)


def a_day_later(
    parts: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]],
) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """The same samples and owners, 24 hours on."""

    def later(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value + timedelta(days=1) if key.endswith("_at") else value for key, value in row.items()} for row in rows]

    return [(later(samples), later(owners)) for samples, owners in parts]


def fill(path: Path, parts: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]], day: date = DAY, cluster: str = "c") -> Lake:
    """A lake of one cluster and day; each part has its samples and its owners."""
    lake = open_lake(path, create=True)
    with lake.change() as change:
        for number, (samples, owners) in enumerate(parts):
            part = f"part-{number:04d}"
            change.write("device_sample", cluster, day, arrow(DEVICE_SAMPLE, samples), part)
            change.write("owner_label", cluster, day, arrow(OWNER_LABEL, owners), part)
            change.write("device_label", cluster, day, arrow(DEVICE_LABEL, []), part)
    return lake


TWO_DEVICES = [
    (
        [sample("GPU-a", 0, 1800, power_watts=100.0), sample("GPU-a", 1800, 1800, power_watts=300.0)],
        [owner("GPU-a", "a", 0, 2700)],
    ),
    ([sample("GPU-b", 0, 3600, power_watts=50.0)], [owner("GPU-b", "b", 0, 3600)]),
]


def facts(lake: Lake, table: str, columns: str) -> list[tuple[Any, ...]]:
    with connection() as con:
        views(con, lake, [f"facts/{table}"])
        return con.sql(f"select {columns} from facts.{table} order by all").fetchall()


def bytes_below(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*.parquet"))}


def test_the_facts_of_a_day_are_written(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    result = compute_day(lake, "c", DAY, ComputeSettings())
    assert result.failures == []
    assert {table: count for table, count in result.rows.items() if count} == {
        "facts.ownership": 2,
        "facts.device_hour": 2,
        "facts.container_hour": 2,
        "facts.ledger_hour": 3,
        "facts.idle_power_hour": 1,
        "facts.power_hour": 2,
        "facts.device_power_hour": 2,
        "facts.pod_workload": 2,
    }
    # a: 1800 s at 100 W and 900 s at 300 W; the device: 1800 s of each.
    assert facts(lake, "container_hour", "pod, observed_seconds, power_joules") == [
        ("a", 2700.0, 450_000.0),
        ("b", 3600.0, 180_000.0),
    ]
    assert facts(lake, "device_hour", "cluster, date, device_uuid, power_joules, thermal_violation_seconds") == [
        ("c", DAY, "GPU-a", 720_000.0, None),
        ("c", DAY, "GPU-b", 180_000.0, None),
    ]


def test_facts_carry_the_version_and_a_hash_of_what_made_them(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)

    def hash_with(threshold: float) -> bytes:
        compute_day(lake, "c", DAY, ComputeSettings(memory_threshold_ratio=threshold), version="9.9")
        metadata = pq.read_metadata(lake.partitions("facts/device_hour")[0].files[0]).metadata
        assert metadata[b"gpureport_version"] == b"9.9"
        return metadata[b"config_hash"]

    assert hash_with(0.9) == hash_with(0.9) != hash_with(0.8)


def test_computing_twice_gives_the_same_bytes(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    compute_day(lake, "c", DAY, ComputeSettings())
    first = bytes_below(lake.path / "facts")
    compute_day(lake, "c", DAY, ComputeSettings(threads=1))
    assert bytes_below(lake.path / "facts") == first


def test_the_parts_of_the_lake_do_not_matter(tmp_path, monkeypatch):
    apart = fill(tmp_path / "apart", TWO_DEVICES)
    (first_samples, first_owners), (more_samples, more_owners) = TWO_DEVICES
    together = fill(tmp_path / "together", [(first_samples + more_samples, first_owners + more_owners)])
    monkeypatch.setattr(compute, "_SAMPLES_AT_ONCE", 1)
    compute_day(apart, "c", DAY, ComputeSettings())
    compute_day(together, "c", DAY, ComputeSettings())
    assert len(apart.partitions("facts/device_hour")[0].files) == 2
    assert facts(apart, "device_hour", "*") == facts(together, "device_hour", "*")
    assert facts(apart, "container_hour", "*") == facts(together, "container_hour", "*")


@pytest.mark.parametrize(
    ("watts", "held_as"), [(1e8, pa.decimal64(18, 3)), (1e13, pa.decimal64(18, 3)), (1e16, pa.float64())], ids=str
)
def test_a_number_too_large_for_a_decimal_product_is_weighed_as_a_double(tmp_path, watts, held_as):
    rows = [sample("GPU-a", 0, 1800, power_watts=100.0), sample("GPU-a", 1800, 1800, power_watts=watts)]
    lake = fill(tmp_path / "lake", [(rows, [owner("GPU-a", "a", 0, 2700)])])
    assert pq.read_schema(lake.partitions("device_sample")[0].files[0]).field("power_watts").type == held_as
    compute_day(lake, "c", DAY, ComputeSettings())
    assert facts(lake, "device_hour", "power_joules, power_watts_max") == [(180_000.0 + 1800 * watts, watts)]
    assert facts(lake, "container_hour", "power_joules") == [(180_000.0 + 900 * watts,)]


def test_files_of_one_batch_may_hold_a_column_as_decimals_and_as_doubles(tmp_path):
    parts = [([sample(device, 0, 60, power_watts=watts)], []) for device, watts in (("GPU-a", 100.0), ("GPU-b", 1e16))]
    lake = fill(tmp_path / "lake", parts)
    compute_day(lake, "c", DAY, ComputeSettings())
    assert facts(lake, "device_hour", "power_joules") == [(6000.0,), (6e17,)]


def test_sums_of_decimals_are_exact(tmp_path):
    # As doubles 0.1 + 0.1 + 0.1 is 0.30000000000000004.
    rows = [sample("GPU-a", second, 1, gpu_util_ratio=0.1) for second in range(3)]
    lake = fill(tmp_path / "lake", [(rows, [])])
    compute_day(lake, "c", DAY, ComputeSettings())
    assert facts(lake, "device_hour", "gpu_util_ratio_seconds") == [(0.3,)]


def test_a_day_without_samples_is_a_lake_error(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with pytest.raises(LakeError, match="holds nothing of c for 2026-03-02; export or import that day first"):
        compute_day(lake, "c", date(2026, 3, 2), ComputeSettings())


def test_a_failed_check_leaves_the_lake_as_it_was(tmp_path):
    overlapping = [sample("GPU-a", 0, 3600), sample("GPU-a", 60, 3540)]
    lake = fill(tmp_path / "lake", [(overlapping, [])])
    with pytest.raises(QueryError, match=r"checks\.device_hour_too_long: .*observed_seconds=7140"):
        compute_day(lake, "c", DAY, ComputeSettings())
    assert lake.partitions("facts/device_hour") == []


def test_a_violation_ratio_above_one_is_a_warning_and_is_not_clamped(tmp_path):
    rows = [sample("GPU-a", 0, 3600, power_violation_seconds=0.0, power_violation_seconds_increase=3_600_000.0)]
    lake = fill(tmp_path / "lake", [(rows, [])])
    (failure,) = compute_day(lake, "c", DAY, ComputeSettings()).failures
    assert (failure.table, failure.row_count) == ("checks.violation_ratio_above_one", 1)
    with connection() as con:
        report_tables(con, lake, WINDOW, ReportSettings())
        assert con.sql("select power_violation_ratio from report.device").fetchall() == [(1000.0,)]


def test_a_memory_limit_that_is_no_size_is_named(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with pytest.raises(LakeError, match="'lots' is no size"):
        compute_day(lake, "c", DAY, ComputeSettings(memory_limit="lots"))


def test_a_damaged_file_is_named(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    lake.partitions("device_sample")[0].files[1].write_bytes(b"PAR1 no more")
    with pytest.raises(LakeError, match=r"part-0001\.parquet cannot be read .* export or import that day again"):
        compute_day(lake, "c", DAY, ComputeSettings())
    assert lake.partitions("facts/device_hour") == []


def test_report_tables_stand_in_the_connection(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    compute_day(lake, "c", DAY, ComputeSettings())
    with connection() as con:
        queries = report_tables(con, lake, WINDOW, ReportSettings())
        assert {"report.container", "report.container_saturation", "report.device", "report.coverage"} <= set(queries)
        assert all(list(query.columns) == list(con.table(table).columns) for table, query in queries.items())
        found = con.sql("select device_uuid, coverage_ratio, energy_joules from report.device order by all").fetchall()
    assert found == [("GPU-a", 3600 / 86400, 720_000.0), ("GPU-b", 3600 / 86400, 180_000.0)]


def test_disabled_saturation_is_null_with_a_reason(tmp_path):
    lake = fill(tmp_path / "lake", [([sample("GPU-a", 0, 3600, sm_active_ratio=0.5)], [owner("GPU-a", "a", 0, 3600)])])
    compute_day(lake, "c", DAY, ComputeSettings())
    asked = "select sm_active_avg, unknown_reasons['sm_active_avg'] from report.container"
    with connection() as con:
        report_tables(con, lake, WINDOW, ReportSettings())
        assert con.sql(asked).fetchall() == [(0.5, None)]
        report_tables(con, lake, WINDOW, ReportSettings(saturation_enabled=False))
        assert con.sql(asked).fetchall() == [(None, "disabled")]


def test_every_null_figure_has_its_reason_and_no_other_has_one(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    compute_day(lake, "c", DAY, ComputeSettings())
    with connection() as con:
        queries = report_tables(con, lake, WINDOW, ReportSettings())
        for table, query in queries.items():
            for row in con.sql(f"from {table}").to_arrow_table().to_pylist():
                if "unknown_reasons" in query.columns:
                    nulls = {name for name, value in row.items() if value is None} - {"suppressed_until"}
                    assert {name for name, _ in row["unknown_reasons"]} == nulls, table


def test_a_report_without_facts_names_the_days(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with connection() as con, pytest.raises(LakeError, match="no facts yet for 2026-03-01; run 'gpureport compute --date'"):
        report_tables(con, lake, WINDOW, ReportSettings())


def test_a_report_of_an_empty_window_says_so(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    elsewhere = Window.of_day(date(2027, 1, 1))
    with connection() as con, pytest.raises(LakeError, match="holds nothing for 2027-01-01"):
        report_tables(con, lake, elsewhere, ReportSettings())


def test_facts_of_different_settings_are_refused_by_name(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    next_day = date(2026, 3, 2)
    fill(lake.path, a_day_later(TWO_DEVICES), next_day)
    compute_day(lake, "c", DAY, ComputeSettings(), version="1.0")
    compute_day(lake, "c", next_day, ComputeSettings(), version="2.0")
    window = Window(WINDOW.start_at, WINDOW.end_at + timedelta(days=1))
    with connection() as con, pytest.raises(LakeError, match="facts of 2026-03-01 were made by another version or configuration"):
        report_tables(con, lake, window, ReportSettings())
    compute_day(lake, "c", DAY, ComputeSettings(), version="2.0")
    with connection() as con:
        report_tables(con, lake, window, ReportSettings())


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's tables, empty."""
    with connection() as con:
        views(con, open_lake(tmp_path_factory.mktemp("lake"), create=True), TABLE_BY_NAME)
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
        for query in needed(load(), ["facts.device_hour", "facts.container_hour"]):
            build(con, query, {"memory_threshold_ratio": 0.5})
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
@settings(max_examples=15)
@given(devices=st.lists(st.tuples(device_rows(), runs_of_owners), min_size=4, max_size=6))
def test_sums_over_pieces_and_hours_are_the_integral(typed, devices):
    owners = [owner(f"GPU-{n}", f"{n}{pod}", *run) for n, (_, runs) in enumerate(devices) for pod, *run in runs]
    found = build_facts(typed, on_devices([rows for rows, _ in devices]), owners)

    assert found["device"] == [(f"GPU-{n}", *map(close, integrate(rows, [(0, 86400)]))) for n, (rows, _) in enumerate(devices)]
    by_pod = {
        f"{n}{pod}": integrate(rows, held)
        for n, (rows, runs) in enumerate(devices)
        for pod, held in held_by_pod(rows, runs).items()
    }
    expected = [(pod, *map(close, sums)) for pod, sums in sorted(by_pod.items()) if sums[0] is not None]
    assert found["container"] == expected


@settings(max_examples=4)
@given(devices=st.lists(st.tuples(device_rows(), runs_of_owners), min_size=4, max_size=5))
def test_cuts_by_other_owners_change_no_sum(typed, devices):
    mine = [owner(f"GPU-{n}", f"mine {n}", 3500, 3700) for n in range(len(devices))]
    others = [owner(f"GPU-{n}", f"{n}{pod}", *run) for n, (_, runs) in enumerate(devices) for pod, *run in runs]
    rows = on_devices([rows for rows, _ in devices])
    alone = build_facts(typed, rows, mine)
    among = build_facts(typed, rows, [*mine, *others])

    assert among["device"] == [(row[0], *map(close, row[1:])) for row in alone["device"]]
    assert [row for row in among["container"] if row[0].startswith("mine")] == [
        (row[0], *map(close, row[1:])) for row in alone["container"]
    ]


def on_devices(each: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all devices, named by their place."""
    return [{**row, "device_uuid": f"GPU-{number}"} for number, rows in enumerate(each) for row in rows]


def close(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-6)
