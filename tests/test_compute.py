"""From a lake of a few rows to facts and report tables, and what refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from few_facts import compute_only
from lake_rows import DAY, arrow, contents, facts, owner, sample

from gpureport.collect.sources.provenance import Origin, source_table
from gpureport.commands.work import reporting
from gpureport.commands.work.settings import report_settings
from gpureport.compute import day as compute
from gpureport.compute.day import ComputeResult, ComputeSettings, compute_days
from gpureport.compute.fact_views import Batch
from gpureport.compute.identity import MadeWith, made_with, recorded
from gpureport.compute.period import ReportSettings, WindowTables, differing_days, report_tables
from gpureport.compute.query import Query, connection, load
from gpureport.config import Config, load_config
from gpureport.lake import Lake, open_lake
from gpureport.values.catalog import load_catalog
from gpureport.values.errors import LakeError, QueryError
from gpureport.values.tables import DEVICE_LABEL, DEVICE_SAMPLE, OWNER_LABEL, TABLE_BY_NAME
from gpureport.values.window import Window

WINDOW = Window.of_day(DAY)
NEXT = date(2026, 3, 2)
BOTH = Window(WINDOW.start_at, WINDOW.end_at + timedelta(days=1))
ALL_AT_ONCE = [("c", DAY), ("c", NEXT), ("d", DAY)]


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
            change.write("device_sample", cluster, day, arrow(DEVICE_SAMPLE, samples), number)
            change.write("owner_label", cluster, day, arrow(OWNER_LABEL, owners), number)
            change.write("device_label", cluster, day, arrow(DEVICE_LABEL, []), number)
    return lake


TWO_DEVICES = [
    (
        [sample("GPU-a", 0, 1800, power_watts=100.0), sample("GPU-a", 1800, 1800, power_watts=300.0)],
        [owner("GPU-a", "a", 0, 2700)],
    ),
    ([sample("GPU-b", 0, 3600, power_watts=50.0)], [owner("GPU-b", "b", 0, 3600)]),
]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, ComputeResult]:
    """Two devices and their facts, of version 9.9, and what was said of them; to read only."""
    lake = fill(tmp_path_factory.mktemp("computed") / "lake", TWO_DEVICES)
    return lake, compute_days(lake, [("c", DAY)], ComputeSettings(), version="9.9")


@pytest.fixture
def computed(first: tuple[Lake, ComputeResult]) -> Lake:
    return first[0]


@pytest.fixture(scope="module")
def told(first: tuple[Lake, ComputeResult]) -> Iterator[tuple[duckdb.DuckDBPyConnection, Mapping[str, Query]]]:
    """A connection with the tables of their report, and its queries."""
    with connection() as con:
        yield con, report_tables(WindowTables(con, first[0], WINDOW, ReportSettings()))


def test_facts_depend_on_the_settings_that_older_facts_name():
    """One name more, and no report adds the days of a lake that was computed before."""
    assert {*ComputeSettings().meaning} == {
        "saturation.memory_threshold_ratio",
        "power.idle_watts",
        *(f"quota {name}" for name in ("gb_per_gpu", "scales_minimums", "monitors_quotas", "k_value", "half_life_hours")),
    }


def test_the_facts_of_a_day_are_written(first):
    lake, result = first
    assert result.failures == []
    assert {table: count for table, count in result.rows.items() if count} == {
        "facts.ownership": 2,
        "facts.expected_device": 2,
        "facts.signal_day": 31,  # 42 signals, 11 of them expected only where they come
        "facts.device_hour": 2,
        "facts.container_hour": 2,
        "facts.ledger_hour": 3,
        "facts.idle_power_hour": 1,
        "facts.value_hour": 2,  # power of each holder; the sample of 00:30 is a's, though its last quarter is free
        "facts.value_day": 2,
        "facts.power_hour": 2,
        "facts.device_power_hour": 2,
        "facts.energy_hour": 2,  # of the namespace, and unallocated
        "facts.pod_workload": 2,
        **{
            "facts.device_day": 2,
            "facts.container_day": 2,
            "facts.power_day": 2,
            "facts.device_power_day": 2,
            "facts.ledger_day": 3,
        },
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


def test_facts_say_their_version_revisions_and_settings(computed):
    metadata = pq.read_metadata(computed.partitions("facts/device_hour")[0].files[0]).metadata
    assert metadata[b"gpureport_version"] == b"9.9"
    made = made_with(load(), ComputeSettings().meaning)
    assert recorded({key.decode(): value.decode() for key, value in metadata.items() if key != b"ARROW:schema"}) == made
    assert recorded(computed.note("c", DAY)) == made


OLDER = "device_uuid, power_joules, low_util_violation_seconds, sm_active_ratio_seconds"
AS_OLDER = [("GPU-a", 720_000.0, None, None)]
LACKING = [each.name for each in DEVICE_SAMPLE.columns if each.nullable and each.name != "power_watts"]


def fill_older(path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The first device as a version wrote it that knew power alone, of a cluster of its name."""
    lake = fill(path, TWO_DEVICES[:1], cluster="older")
    [file] = lake.partition("device_sample", "older", DAY).files
    rows = pq.ParquetFile(file).read()
    with monkeypatch.context() as patched, lake.change() as change:
        patched.setattr("gpureport.lake.commit.TABLE_BY_NAME", {})  # the rows are as files hold them
        change.write("device_sample", "older", DAY, rows.drop_columns(LACKING), 0)
    return lake


def test_neither_threads_nor_a_few_holders_at_a_time_change_a_byte_of_facts_nor_parts_a_figure(computed, tmp_path, monkeypatch):
    """The same day again, and beside it in one part as cluster d."""
    path = Path(shutil.copytree(computed.path, tmp_path / "lake"))
    (first_samples, first_owners), (more_samples, more_owners) = TWO_DEVICES
    again = fill(path, [(first_samples + more_samples, first_owners + more_owners)], cluster="d")
    widest = load()["facts.container_hour"]
    assert widest.parts
    parts = {widest.table: replace(widest, parts=replace(widest.parts, row_count=1))}
    monkeypatch.setattr(compute, "load", lambda: {**load(), **parts})
    compute_days(again, [("c", DAY), ("d", DAY)], ComputeSettings(threads=1), version="9.9")
    same = contents(computed)
    assert {name: content for name, content in contents(again).items() if "/c/" in name} == same
    for table in ("device_hour", "container_hour"):
        found, expected = (
            facts(lake.of_cluster(name), table, "* exclude (cluster)") for lake, name in ((again, "d"), (computed, "c"))
        )
        assert found == expected != []


LARGE = {"GPU-a": (1e8, pa.decimal64(18, 3)), "GPU-b": (1e13, pa.decimal64(18, 3)), "GPU-c": (1e16, pa.float64())}


@pytest.fixture(scope="module")
def computed_by_two(first, tmp_path_factory) -> Path:
    """The day, and what another version computed: a day later, and clusters of odd samples; to read only."""
    path = tmp_path_factory.mktemp("two-days") / "lake"
    shutil.copytree(first[0].path, path)
    with pytest.MonkeyPatch.context() as patched:
        fill_older(path, patched)
    parts = [
        (
            [sample(device, 0, 1800, power_watts=100.0), sample(device, 1800, 1800, power_watts=watts)],
            [owner(device, device, 0, 2700)],
        )
        for device, (watts, _) in LARGE.items()
    ]
    fill(path, [*parts, ([sample("GPU-d", second, 1, gpu_util_ratio=0.1) for second in range(3)], [])], cluster="large")
    fill(path, [([sample("GPU-a", 0, 3600, sm_active_ratio=0.5)], [owner("GPU-a", "a", 0, 3600)])], cluster="saturated")
    lake = fill(path, a_day_later(TWO_DEVICES), NEXT)
    days = [("c", NEXT), ("large", DAY), ("older", DAY), ("saturated", DAY)]
    compute_days(lake, days, ComputeSettings(), version="2.0")
    return path


def test_numbers_are_weighed_as_decimals_where_they_fit_and_as_doubles_where_not(computed_by_two):
    """1e16 W fit no decimal of the file, the product of 1e13 W with seconds no decimal at all; as doubles 0.1 + 0.1 + 0.1 is
    0.30000000000000004.
    """
    lake = open_lake(computed_by_two).of_cluster("large")
    files = lake.partitions("device_sample")[0].files
    kinds = [pq.read_schema(file).field("power_watts").type for file in files[:3]]
    assert kinds == [kind for _, kind in LARGE.values()]
    assert facts(lake, "device_hour", "device_uuid, power_joules, power_watts_max, gpu_util_ratio_seconds") == [
        *((device, 180_000.0 + 1800 * watts, watts, None) for device, (watts, _) in LARGE.items()),
        ("GPU-d", None, None, 0.3),
    ]
    assert facts(lake, "container_hour", "pod, power_joules") == [
        (device, 180_000.0 + 900 * watts) for device, (watts, _) in LARGE.items()
    ]


def test_samples_of_an_older_version_that_lack_columns_are_computed(computed_by_two):
    assert facts(open_lake(computed_by_two).of_cluster("older"), "device_hour", OLDER) == AS_OLDER


def test_a_day_without_samples_is_a_lake_error(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with pytest.raises(LakeError, match="has no data of c for 2026-03-02; export or import that day first"):
        compute_days(lake, [("c", date(2026, 3, 2))], ComputeSettings())


VIOLATING = [sample("GPU-a", 0, 3600, power_violation_seconds=0.0, power_violation_seconds_increase=3_600_000.0)]
OVERLAPPING = [sample("GPU-a", 0, 3600), sample("GPU-a", 60, 3540)]


@pytest.fixture
def at_once(tmp_path, monkeypatch):
    """A function that computes two days of c, the second of the samples given, and one of d; and what it computed at once."""
    computed = list[list[tuple[str, date]]]()

    def note(lake, batch, settings):
        computed.append([*batch])
        return compute_days(lake, batch, settings)

    def compute(second):
        for cluster, day, rows in (("c", DAY, TWO_DEVICES), ("c", NEXT, a_day_later([(second, [])])), ("d", DAY, TWO_DEVICES)):
            lake = fill(tmp_path / "lake", rows, day, cluster)
            with lake.change() as change:
                told = source_table({}, load_catalog(), Origin("file", "a", "openmetrics"), Window.of_day(day))
                change.write("source", cluster, day, told)
        return reporting.compute(Config(lake=tmp_path / "lake"), [NEXT, DAY])

    monkeypatch.setattr(reporting, "compute_days", note)
    compute_only(monkeypatch, "facts.device_hour")
    return compute, computed


def test_a_violation_ratio_above_one_is_a_warning_that_names_its_day_and_no_figure(at_once, tmp_path, monkeypatch):
    compute, computed = at_once
    (line,) = compute(VIOLATING)
    assert line.startswith("c 2026-03-02: checks.violation_ratio_above_one: ")
    assert "1 row, such as " in line and "cluster=c," in line
    assert computed == [ALL_AT_ONCE]
    lake = open_lake(tmp_path / "lake")
    assert len(lake.partitions("facts/device_hour")) == 3
    with connection() as con:
        WindowTables(con, lake, Window.of_day(NEXT), ReportSettings()).build(["report.device"])
        [(ratio, seconds, why)] = con.sql(
            "select power_violation_ratio, power_violation_seconds, unknown_reasons from report.device where cluster = 'c'"
        ).fetchall()
        assert (ratio, why["power_violation_ratio"], seconds, why["power_violation_seconds"]) == (None, "implausible") * 2
    monkeypatch.setattr(reporting, "ROWS_WORTH_LOOPS", 3)
    assert reporting._batches(lake, ALL_AT_ONCE) == [[each] for each in ALL_AT_ONCE]


def test_a_day_that_fails_a_check_is_left_as_it_was_and_keeps_no_other_from_being_computed(at_once, tmp_path):
    compute, computed = at_once
    with pytest.raises(QueryError, match=r"checks\.device_hour_too_long: .*cluster=c, .*observed_seconds=7140"):
        compute(OVERLAPPING)
    assert computed == [ALL_AT_ONCE, [("c", DAY)], [("c", NEXT)]]
    assert [each.date for each in open_lake(tmp_path / "lake").partitions("facts/device_hour")] == [DAY]


def test_a_memory_limit_that_is_no_size_is_named(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with pytest.raises(LakeError, match="'lots' is not a size"):
        compute_days(lake, [("c", DAY)], ComputeSettings(memory_limit="lots"))


def test_a_damaged_file_is_named(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    lake.partitions("device_sample")[0].files[1].write_bytes(b"PAR1 no more")
    with pytest.raises(LakeError, match=r"-0001\.parquet of device_sample, c, 2026-03-01 is damaged .* export or import"):
        compute_days(open_lake(lake.path), [("c", DAY)], ComputeSettings())
    assert lake.partitions("facts/device_hour") == []


def test_report_tables_stand_in_the_connection(told):
    con, queries = told
    assert {"report.container", "report.container_saturation", "report.device", "report.coverage"} <= set(queries)
    assert all(sorted(query.columns) == sorted(con.table(table).columns) for table, query in queries.items())
    found = con.sql("select device_uuid, coverage_ratio, energy_joules from report.device order by all").fetchall()
    assert found == [("GPU-a", 3600 / 86400, 720_000.0), ("GPU-b", 3600 / 86400, 180_000.0)]


def test_disabled_saturation_is_null_with_a_reason(computed_by_two):
    lake = open_lake(computed_by_two).of_cluster("saturated")
    asked = "select observed_seconds, sm_active_avg, unknown_reasons['sm_active_avg'] from report.container"
    configured, _ = load_config(None, {"GPU_SATURATION_METRICS_ENABLED": "false"}, {})
    with connection() as con:
        for config, expected in ((Config(), (3600, 0.5, None)), (configured, (3600, None, "disabled"))):
            WindowTables(con, lake, WINDOW, report_settings(config)).build(["report.container"])
            assert con.sql(asked).fetchall() == [expected]


def test_every_null_figure_has_its_reason_and_no_other_has_one(told, simulated_demo):
    con, queries = told
    with duckdb.connect(simulated_demo / "gpureport.duckdb", read_only=True) as database:
        for table, query in queries.items():
            if "unknown_reasons" in query.columns:
                known = set(database.sql("select concat_ws('.', schema_name, table_name) from duckdb_tables()").fetchall())
                for each in (con, *([database] if (table,) in known else [])):
                    for row in each.sql(f"from {table}").to_arrow_table().to_pylist():
                        nulls = {name for name, value in row.items() if value is None} - {"suppressed_until"}
                        assert {name for name, _ in row["unknown_reasons"]} == nulls, table


def test_a_report_without_facts_names_the_days(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    with connection() as con, pytest.raises(LakeError, match="no facts yet for 2026-03-01; run 'gpureport compute'"):
        report_tables(WindowTables(con, lake, WINDOW, ReportSettings()))


def test_a_report_of_an_empty_window_says_so(tmp_path):
    lake = fill(tmp_path / "lake", TWO_DEVICES)
    elsewhere = Window.of_day(date(2027, 1, 1))
    with connection() as con, pytest.raises(LakeError, match="has no data for 2027-01-01"):
        report_tables(WindowTables(con, lake, elsewhere, ReportSettings()))


@pytest.fixture
def two_days(computed_by_two, tmp_path) -> Lake:
    return open_lake(shutil.copytree(computed_by_two, tmp_path / "lake"))


def test_days_in_a_row_are_named_by_the_first_and_the_last(computed, tmp_path):
    shutil.copytree(computed.path, tmp_path / "lake")
    series = TWO_DEVICES
    for later in range(1, 6):
        series = a_day_later(series)
        if later != 4:
            lake = fill(tmp_path / "lake", series, DAY + timedelta(days=later))
    with connection() as con, pytest.raises(LakeError, match="no facts yet for 2026-03-02 to 2026-03-04, 2026-03-06; run"):
        report_tables(WindowTables(con, lake, Window(WINDOW.start_at, WINDOW.end_at + timedelta(days=5)), ReportSettings()))


def energy(lake: Lake, made: MadeWith) -> list[tuple[Any, ...]]:
    with connection() as con:
        WindowTables(con, lake.of_cluster("c"), BOTH, ReportSettings(), made).build(["report.device"])
        return con.sql("select device_uuid, energy_joules from report.device order by all").fetchall()


TWICE = [("GPU-a", 1_440_000.0), ("GPU-b", 360_000.0)]


def test_facts_of_two_versions_are_the_same_facts_and_other_settings_are_named(two_days, caplog):
    made = made_with(load(), ComputeSettings().meaning)
    assert energy(two_days, made) == TWICE
    assert differing_days(two_days, BOTH, made) == ()
    other = made_with(load(), ComputeSettings(memory_threshold_ratio=0.8).meaning)
    said = "computed with saturation.memory_threshold_ratio 0.9 instead of 0.8"
    again = "run 'gpureport compute' for these days (--date, or --since and --until), then report again"
    assert differing_days(two_days, BOTH, other) == (f"2 of 2 days were {said}: 2026-03-01, 2026-03-02; {again}",)
    assert energy(two_days, other) == TWICE
    assert again in caplog.text  # sql and top have no page for the note
    two_days.remove([each for each in two_days.partitions("device_sample") if each.date == DAY])
    assert energy(two_days, other) == TWICE
    assert differing_days(two_days, BOTH, other) == (
        f"1 of 2 days were {said}: 2026-03-02; {again}",
        f"1 of 2 days were {said}: 2026-03-01; their samples are gone",
    )
    # power.idle_watts names GPUs: in a report without names no value stands.
    assert differing_days(two_days, BOTH, other, has_names=False)[1] == (
        "1 of 2 days were computed with other settings: 2026-03-01; their samples are gone"
    )


def test_facts_of_another_revision_count_and_are_named_and_columns_that_they_lack_are_unknown(two_days):
    queries = load()
    changed = {
        table: replace(query, revision=query.revision + 1) for table, query in queries.items() if table == "facts.power_hour"
    }
    made = made_with({**queries, **changed}, ComputeSettings().meaning)
    old = {table: two_days.partition(table, "c", DAY).files[0] for table in ("facts/device_hour", "facts/device_day")}
    with two_days.change() as change:
        for table, file in old.items():
            change.write(table, "c", DAY, pq.read_table(file, partitioning=None).drop_columns(["power_watts_max"]))
        change.note("c", NEXT, {**two_days.note("c", NEXT), **made.entries})
    assert differing_days(two_days, BOTH, made) == (
        "1 of 2 days were computed by another revision of facts.power_hour: 2026-03-01",
    )
    with connection() as con:
        WindowTables(con, two_days.of_cluster("c"), WINDOW, ReportSettings(), made).build(["report.device"])
        found = con.sql("select device_uuid, energy_joules, power_watts_max from report.device order by all").fetchall()
        assert found == [("GPU-a", 720_000.0, None), ("GPU-b", 180_000.0, None)]


def test_an_activity_of_an_older_revision_counts_by_its_name_of_today_and_the_day_is_named(two_days):
    """Only power is known. Of 24 h GPU-a is held for 45 minutes and free for a quarter of an hour, GPU-b is held for an hour."""
    said = "1 of 2 days were computed by another revision of facts.ledger_day, facts.ledger_hour: 2026-03-01"
    made, note = made_with(load(), ComputeSettings().meaning), two_days.note("c", DAY)
    older = {"facts.ledger_day": 4, "facts.ledger_hour": 7}
    with two_days.change() as change:
        for table in older:
            folder = table.replace(".", "/")
            rows = pq.read_table(two_days.partition(folder, "c", DAY).files[0], partitioning=None)
            old = pc.replace_substring_regex(rows["activity"], "^unreported$", "untold")
            assert "untold" in old.to_pylist()
            change.write(folder, "c", DAY, rows.set_column(rows.schema.get_field_index("activity"), "activity", old))
        change.note("c", DAY, {**note, "revisions": json.dumps({**json.loads(note["revisions"]), **older})})
    assert differing_days(two_days, BOTH, made) == (said,)
    noon = WINDOW.start_at + timedelta(hours=12)
    for window in (WINDOW, Window(WINDOW.start_at, noon)):  # by the stored roll-up, and by one of the hours
        with connection() as con:
            WindowTables(con, two_days.of_cluster("c"), window, ReportSettings(), made).build(["report.gpu_hour_ledger"])
            found = con.sql("from report.gpu_hour_ledger select bucket, sum(gpu_hours) group by all order by all").fetchall()
            assert [each for each in found if each[0] != "unknown"] == [("allocated_unmeasured", 1.75), ("free", 0.25)]


def test_hours_of_all_days_are_open_beside_roll_ups_of_edges_and_a_history(two_days):
    noon = WINDOW.start_at + timedelta(hours=12)
    with connection() as con:
        tables = WindowTables(con, two_days.of_cluster("c"), Window(noon, noon + timedelta(days=1)), ReportSettings())
        for named in (tables.kept, ["period.demand_day", "period.power", "period.sum"]):  # as a report with --facts
            tables.build(named)
        for table in ("container_hour", "power_hour"):
            assert con.sql(f"select distinct hour_start_at::date from facts.{table} order by 1").fetchall() == [(DAY,), (NEXT,)]


def test_a_day_of_a_history_that_was_made_otherwise_stays_out_beside_a_cluster_whose_day_was_not(two_days):
    """The first day of c was computed with other settings than the second; that of large with those of the window."""
    note = two_days.note("c", DAY)
    with two_days.change() as change:
        change.note("c", DAY, {**note, "settings": json.dumps({**json.loads(note["settings"]), "other": 1})})
    with connection() as con:
        WindowTables(con, two_days, Window(WINDOW.end_at, BOTH.end_at), ReportSettings()).build(["period.demand_day"])
        found = con.sql("select distinct cluster, day from period.demand_day where cluster in ('c', 'large') order by all")
        assert found.fetchall() == [("c", NEXT), ("large", DAY)]


def row_of(table: str, **given: Any) -> pa.Table:
    """One row of a table of the lake, empty but for what is given."""
    blank = {"string": "", "int64": 0, "double": 0.0, "bool": False}
    told = {each.name: blank.get(str(each.type), []) for each in TABLE_BY_NAME[table].schema if "timestamp" not in str(each.type)}
    return arrow(TABLE_BY_NAME[table], [{**told, **given}])


def test_days_around_give_the_beginning_of_a_day_and_what_it_does_not_list(tmp_path):
    """One GPU in ten replicas, cordoned ten minutes before 1 March; in four that day; in ten on the next, with another node."""
    lake = open_lake(tmp_path / "lake", create=True)
    evening, noon = datetime(2026, 2, 28, 23, 50), datetime(2026, 3, 1, 12)
    listed = [("a", evening, 10), ("a", noon, 4), ("a", noon + timedelta(1), 10), ("b", noon + timedelta(1), 10)]
    with lake.change() as change:
        for node, at, replicas in listed:
            change.write("source", "c", at.date(), row_of("source", kind="kubernetes", asked="nodes", start_at=at, end_at=at))
            labels = {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.sharing-strategy": "time-slicing"}
            offered = {"node_name": node, "node_uid": node, "capacity": {"nvidia.com/gpu": replicas}, "labels": labels}
            rows = row_of("node", observed_at=at, is_ready=True, is_unschedulable=at == evening, **offered)
            change.write("node", "c", at.date(), rows, int(node == "b"))
        change.write("series", "c", DAY, row_of("series"))
        change.write("series", "c", NEXT, row_of("series"))
        for number, (namespace, at, team) in enumerate(
            (("n", noon, "x"), ("n", noon + timedelta(1), "y"), ("late", noon + timedelta(1), "z"))
        ):
            rows = row_of("namespace", observed_at=at, namespace=namespace, labels={"team": team})
            change.write("namespace", "c", at.date(), rows, number)
        rows = row_of(
            "pod", observed_at=noon + timedelta(1), namespace="n", pod="p", pod_uid="u", owner_kind="Job", owner_name="j"
        )
        change.write("pod", "c", NEXT, rows)
    for days in ([("c", DAY)], [("c", DAY), ("c", NEXT)]):
        with connection() as con:
            found = compute.state_around_day(con, lake, Batch(days))
            is_first = f"cluster in ('c', 'c {DAY}')"
            parts = con.sql(f"select node_name, replica_gpus from day.gpu_node where {is_first} order by all").fetchall()
            assert parts == [("a", 0.25), ("b", 0.1)]
            shared = con.from_arrow(found["day.node_sharing"]).filter(is_first).select("node_name, strategy").order("node_name")
            assert shared.fetchall() == [("a", "time-slicing"), ("b", "time-slicing")]
            outages = con.from_arrow(found["day.outage"]).select("node_name, start_at, end_at, cause")
            teams = (
                con.from_arrow(found["day.namespace_label"])
                .filter(is_first)
                .select("namespace, labels['team']")
                .order("namespace")
            )
            assert teams.fetchall() == [("late", "z"), ("n", "x")]
            makers = con.from_arrow(found["day.pod_controller"]).filter(is_first).select("pod, maker_kind, maker")
            assert makers.fetchall() == [("p", "Job", "j")]
            assert outages.fetchall() == [("a", datetime(2026, 3, 1), datetime(2026, 3, 1, 0, 5), "cordoned")]
