"""The lake: partitions appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gpureport.errors import LakeError, UsageError
from gpureport.lake import open_lake, views
from gpureport.lake.change import LakeBusyError
from gpureport.lake.layout import MARKER, partition_folder
from gpureport.tables import OWNER_LABEL, SAMPLE, SCHEMA_VERSION

DAY = date(2026, 11, 20)


def sample_rows(count: int, start: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "series_id": pa.array(numbers, pa.uint64()),
            "seen_at": pa.array([0] * count, pa.timestamp("ms")),
            "value": pa.array([number * 1.1 for number in numbers], pa.float64()),
            "held_seconds": pa.array([30.0] * count),
            "increase": pa.nulls(count, pa.float64()),
            "gap_increase": pa.nulls(count, pa.float64()),
            "is_carried": pa.array([False] * count),
        },
        schema=SAMPLE.schema,
    )


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*.parquet"))}


def write(path: Path, rows: pa.Table, part: str = "part-0000") -> None:
    with open_lake(path, create=True).change() as change:
        change.write("sample", "lab", DAY, rows, part)


def test_a_partition_is_replaced_whole(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3), "part-0001")
    write(tmp_path, sample_rows(2), "part-0000")
    (partition,) = open_lake(tmp_path).partitions("sample")
    assert [file.name for file in partition.files] == ["part-0000.parquet"]


def test_an_exception_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match="server gone"), open_lake(tmp_path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        raise RuntimeError("server gone")
    assert contents(tmp_path) == before


def test_an_abandoned_change_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = contents(tmp_path)
    with open_lake(tmp_path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        change.abandon()
    assert contents(tmp_path) == before


def test_a_killed_writer_leaves_no_trace_and_no_lock(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    before = contents(tmp_path)
    process = multiprocessing.get_context("spawn").Process(target=_stage_in_child, args=(tmp_path, str(tmp_path / "staged")))
    process.start()
    while not (tmp_path / "staged").exists():
        process.join(0.05)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert contents_outside_staging(tmp_path) == before
    write(tmp_path, sample_rows(4))
    assert not (tmp_path / ".staging").exists()
    assert duckdb.connect().execute(
        "select count(*) from read_parquet(?)", [str(tmp_path / "sample/*/*/*.parquet")]
    ).fetchone() == (4,)


def _stage_in_child(path: Path, signal_file: str) -> None:
    with open_lake(path).change() as change:
        change.write("sample", "lab", DAY, sample_rows(5))
        Path(signal_file).touch()
        signal.pause()


def contents_outside_staging(path: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(path).items() if not name.startswith(".staging")}


def test_a_second_writer_is_told_to_wait(tmp_path: Path) -> None:
    lake = open_lake(tmp_path, create=True)
    with lake.change(), pytest.raises(LakeBusyError, match="another gpureport is writing"), lake.change():
        pass


def _fill_with_limit(path: Path, limit_bytes: int, result: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    try:
        write(path, sample_rows(200_000))
    except LakeError as error:
        Path(result).write_text(str(error)[:200])


def test_a_full_disk_is_one_sentence_and_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, sample_rows(3))
    before = contents(lake)
    result = tmp_path / "result"
    process = multiprocessing.get_context("spawn").Process(target=_fill_with_limit, args=(lake, 4096, str(result)))
    process.start()
    process.join()
    assert "free space, then run again" in result.read_text()
    assert contents(lake) == before


def test_a_lake_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(1))
    (tmp_path / MARKER).write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1}))
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


def test_a_folder_that_is_no_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a gpureport lake"):
        open_lake(tmp_path)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", ".hidden", "x" * 101])
def test_a_cluster_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a cluster"):
        partition_folder("sample", name, DAY)


def test_views_read_the_partition_columns_and_type_empty_tables(tmp_path: Path) -> None:
    write(tmp_path, sample_rows(3))
    con = duckdb.connect()
    made = views(con, open_lake(tmp_path), ["sample", "owner_label", "facts/device_hour"])
    assert made == ["lake.sample", "lake.owner_label"]
    assert con.execute("select distinct cluster, date from lake.sample").fetchall() == [("lab", DAY)]
    assert con.execute("select * from lake.owner_label").fetchall() == []
    columns = [row[0] for row in con.execute("describe lake.owner_label").fetchall()]
    assert columns == [*OWNER_LABEL.schema.names, "cluster", "date"]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one", sample_rows(1000))
    write(tmp_path / "two", sample_rows(1000))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
