"""The lake: partitions appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import resource
import signal
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lake_rows import seen

from gpureport.lake import LakeBusyError, exclusive_run, open_lake, views
from gpureport.lake.root import MARKER, ROOT, partition_folder
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.tables import OWNER_LABEL, SAMPLE, SCHEMA_VERSION

DAY = date(2026, 11, 20)


def sample_rows(count: int, start: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "series_id": pa.array(numbers, pa.int64()),
            "seen_at": pa.array([0] * count, pa.timestamp("ms")),
            "value": pa.array([number * 1.1 for number in numbers], pa.float64()),
            "held_seconds": pa.array([30.0] * count),
            "increase": pa.nulls(count, pa.float64()),
            "gap_increase": pa.nulls(count, pa.float64()),
            "is_carried": pa.array([False] * count),
        },
        schema=SAMPLE.schema,
    )


def write(path: Path, rows: pa.Table, part: int = 0) -> None:
    with open_lake(path, create=True).change() as change:
        change.write("sample", "lab", DAY, rows, part)


def test_a_partition_is_replaced_whole(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3), 1)
    write(tmp_path, sample_rows(2), 0)
    assert list(seen(tmp_path)) == [f"sample/lab/{DAY}/0000"]
    write(tmp_path, sample_rows(0))
    assert seen(tmp_path) == {}


def test_an_exception_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = seen(tmp_path)
    with pytest.raises(RuntimeError, match="server gone"), open_lake(tmp_path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        raise RuntimeError("server gone")
    assert seen(tmp_path) == before


def test_an_abandoned_change_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = seen(tmp_path)
    with open_lake(tmp_path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        change.abandon()
    assert seen(tmp_path) == before


def test_a_killed_writer_leaves_no_trace_and_no_lock(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = seen(tmp_path)
    process = multiprocessing.get_context("spawn").Process(target=_stage_in_child, args=(tmp_path, str(tmp_path / "staged")))
    process.start()
    while not (tmp_path / "staged").exists():
        process.join(0.05)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert seen(tmp_path) == before
    write(tmp_path, sample_rows(4))
    assert not list(tmp_path.glob(".staging-*"))
    assert [each.row_count for each in open_lake(tmp_path).partitions("sample")] == [4]


def _stage_in_child(path: Path, signal_file: str) -> None:
    with open_lake(path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        Path(signal_file).touch()
        signal.pause()


def test_of_two_writers_of_a_day_the_second_loses_whole(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(1))
    with pytest.raises(LakeBusyError, match=f"another gpureport changed {DAY} of lab"), open_lake(tmp_path).change() as late:
        late.write("facts/device_hour", "lab", DAY, sample_rows(7))
        write(tmp_path, sample_rows(2))
    assert list(seen(tmp_path)) == [f"sample/lab/{DAY}/0000"]


def _fill_with_limit(path: Path, limit_bytes: int, result: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    try:
        write(path, sample_rows(200_000))
    except LakeError as error:
        Path(result).write_text(str(error)[:500])


def test_a_full_disk_is_one_sentence_and_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, sample_rows(3))
    before = seen(lake)
    result = tmp_path / "result"
    process = multiprocessing.get_context("spawn").Process(target=_fill_with_limit, args=(lake, 4096, str(result)))
    process.start()
    process.join()
    assert "free space, then run again" in result.read_text()
    assert seen(lake) == before


def test_a_lake_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    root = gzip.compress(json.dumps({"schema_version": SCHEMA_VERSION + 1}).encode())
    (tmp_path / ROOT).write_bytes(root)
    with pytest.raises(LakeError, match="upgrade gpureport"):
        open_lake(tmp_path)


@pytest.mark.parametrize("content", ["", "{", '{"schema_version": "two"}', "[]"])
def test_a_broken_marker_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(LakeError, match="cannot be read"):
        open_lake(tmp_path)


def test_a_missing_lake_says_how_to_fill_one(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="gpureport export"):
        open_lake(tmp_path / "nothing")


def test_a_run_that_wrote_nothing_leaves_no_folder_that_seems_in_use(tmp_path: Path) -> None:
    with exclusive_run(tmp_path / "lake"):
        pass
    with pytest.raises(LakeError, match=r"there is no lake at .*gpureport export"):
        open_lake(tmp_path / "lake")


def test_a_folder_that_is_no_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a gpureport lake"):
        open_lake(tmp_path)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", ".hidden", "x" * 101])
def test_a_cluster_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a cluster"):
        partition_folder("sample", name, DAY)


def test_a_reader_goes_on_with_the_lake_that_it_opened_while_days_are_replaced_and_pruned(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    lake = open_lake(tmp_path)
    with duckdb.connect() as con:
        views(con, lake, ["sample"])
        write(tmp_path, sample_rows(5))
        later = open_lake(tmp_path)
        later.remove(later.partitions("sample"))
        assert later.delete_unused_files() == 0  # not a day old
        assert con.execute("select count(*) from lake.sample").fetchone() == (3,)
        assert [each.row_count for each in lake.partitions("sample")] == [3]
    write(tmp_path, sample_rows(1))  # says when those before it were replaced
    assert later.delete_unused_files(timedelta(seconds=-60)) == 2
    assert len(list(tmp_path.rglob("*.parquet"))) == 1 and len(seen(tmp_path)) == 1


def test_what_is_not_gpureports_is_never_touched(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    folder = tmp_path / "sample" / "cluster=lab" / f"date={DAY}"
    mine = [folder / "notes.txt", folder / "part-0000.parquet", tmp_path / "mine" / "cluster=a" / f"date={DAY}" / "x.parquet"]
    for file in mine:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    lake = open_lake(tmp_path)
    lake.remove(lake.partitions("sample"))
    write(tmp_path, sample_rows(1))
    assert lake.delete_unused_files(timedelta(seconds=-60)) == 1
    assert all(file.read_text() == "mine" for file in mine)


def test_views_read_the_partition_columns_and_type_empty_tables(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    con = duckdb.connect()
    made = views(con, open_lake(tmp_path), ["sample", "owner_label", "facts/device_hour"])
    assert made == ["lake.sample", "lake.owner_label"]
    assert con.execute("select distinct cluster, date from lake.sample").fetchall() == [("lab", DAY)]
    assert con.execute("select * from lake.owner_label").fetchall() == []
    columns = [row[0] for row in con.execute("describe lake.owner_label").fetchall()]
    assert columns == [*OWNER_LABEL.schema.names, "cluster", "date"]


@pytest.mark.parametrize("above", ["cluster=other", "date=2020-01-01", "value=7", "env=prod", "odd lake=%20"])
def test_a_folder_above_the_lake_with_an_equals_sign_is_no_column_and_no_cluster(above: str, tmp_path: Path) -> None:
    write(tmp_path / above, sample_rows(3))
    con = duckdb.connect()
    views(con, open_lake(tmp_path / above), ["sample"])
    rows = con.sql("select * from lake.sample")
    assert rows.columns == [*SAMPLE.schema.names, "cluster", "date"]
    assert rows.select("cluster, date, value").fetchall() == [("lab", DAY, number * 1.1) for number in range(3)]


def test_facts_that_no_day_of_an_older_lake_has_are_empty_tables_whose_days_are_days(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    con = duckdb.connect()
    wanted = {"facts.expected_device": ["cluster", "device_uuid", "day", "due_from_at"]}
    assert views(con, open_lake(tmp_path), ["facts/expected_device"], wanted=wanted) == ["facts.expected_device"]
    assert con.execute("select * from facts.expected_device where day >= date '2026-11-20'").fetchall() == []


def test_lists_that_no_day_of_an_older_lake_has_are_empty_lists_of_numbers(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        wanted = {"facts.value_day": ["bins", "bin_milliseconds"]}
        views(con, open_lake(tmp_path, create=True), ["facts/value_day"], wanted=wanted)
        assert con.execute("select unnest(bins), unnest(bin_milliseconds) from facts.value_day").fetchall() == []


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one", sample_rows(1000))
    write(tmp_path / "two", sample_rows(1000))
    assert seen(tmp_path / "one") == seen(tmp_path / "two")


@pytest.mark.parametrize("versions", [["old"], ["new"], ["old", "new"]], ids=" ".join)
def test_facts_of_older_versions_are_read_under_the_names_of_today(versions: list[str], tmp_path: Path) -> None:
    """An old name does not stay beside the new one, for patterns would count it twice."""
    days = {
        "old": ({"hour": [1], "held_joules": [5.0], "held_idle_joules": [2.0]}, (1, 5.0, 2.0, 0.0)),
        "new": ({"hour": [2], "allocated_idle_joules": [7.0], "allocated_baseline_joules": [3.0]}, (2, 7.0, 3.0, 0.0)),
    }
    with open_lake(tmp_path, create=True).change() as change:
        for number, version in enumerate(versions):
            change.write("facts/power_hour", "lab", DAY + timedelta(days=number), pa.table(days[version][0]))
    wanted = {"facts.power_hour": ["hour", "allocated_idle_joules", "allocated_baseline_joules", "free_core_percent"]}
    with duckdb.connect() as con:
        views(con, open_lake(tmp_path), ["facts/power_hour"], wanted=wanted)
        assert sorted(column for column in con.table("facts.power_hour").columns if column.endswith("joules")) == [
            "allocated_baseline_joules",
            "allocated_idle_joules",
        ]
        found = con.execute(
            "select hour, allocated_idle_joules, allocated_baseline_joules, coalesce(free_core_percent, 0)"
            " from facts.power_hour order by 1"
        )
        assert found.fetchall() == [days[version][1] for version in versions]
