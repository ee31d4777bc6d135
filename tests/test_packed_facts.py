"""Facts of a month are one file a table, and every day of it stays what it was: to read, to make again, to remove, to examine."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lake_rows import facts
from test_lake_damage import flipped

from gpureport.cli import main
from gpureport.config import Retention
from gpureport.lake import DamagedError, Lake, LakeBusyError, open_lake
from gpureport.lake.check import damaged_files
from gpureport.lake.retention import prune

DAYS = [date(2026, 10, 1) + timedelta(days=number) for number in range(31)]
AFTER = date(2026, 11, 5)
TABLE = "facts/device_hour"


def compute(lake: Path, day: date, count: int, cluster: str = "lab", **more: pa.Array) -> None:
    with open_lake(lake, create=True).change() as change:
        change.write(TABLE, cluster, day, pa.table({"gpu": list(range(count)), **more}))
        change.note(cluster, day, {"made": "of nothing"})


def rows(lake: Path) -> list[tuple[object, ...]]:
    return facts(open_lake(lake), "device_hour", "cluster, date, gpu")


def packs(lake: Lake) -> set[str]:
    return {each.name for _, _, each in lake.root.each() if each.is_packed}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A month of two clusters, whose day number N has N rows; the last days have a column more."""
    for number, day in enumerate(DAYS, 1):
        compute(tmp_path / "lake", day, number, **({} if number < 25 else {"watts": pa.array([1.5] * number)}))
        compute(tmp_path / "lake", day, 1, "other")
    return tmp_path / "lake"


def test_a_month_is_a_file_a_cluster_and_reads_as_before(lake: Path) -> None:
    before, extra = rows(lake), "count(watts), sum(watts)"
    assert len(before) == sum(range(1, 32)) + 31
    assert open_lake(lake).pack_facts(AFTER) == 2
    opened = open_lake(lake)
    assert rows(lake) == before
    assert facts(opened, "device_hour", extra) == [(sum(range(25, 32)), 1.5 * sum(range(25, 32)))]
    assert len(packs(opened)) == len(opened.root.names()) == 2
    assert [each.row_count for each in opened.partitions(TABLE) if each.cluster == "lab"] == list(range(1, 32))
    assert open_lake(lake).pack_facts(AFTER) == 0


def test_days_that_may_change_and_short_runs_of_them_wait(lake: Path) -> None:
    assert open_lake(lake).pack_facts(DAYS[6]) == 0
    assert open_lake(lake).pack_facts(DAYS[7], at_most=1) == 1
    opened = open_lake(lake)
    [name] = packs(opened)
    assert {key for _, key, each in opened.root.each() if each.name == name} in (
        {f"{cluster}/{day}" for day in DAYS[:7]} for cluster in ("lab", "other")
    )


def test_a_day_is_made_again_and_another_removed_and_the_month_is_packed_again(lake: Path) -> None:
    open_lake(lake).pack_facts(AFTER)
    compute(lake, DAYS[4], 100)
    prune(open_lake(lake), Retention(keep_facts="29d"), DAYS[-1] + timedelta(days=1))
    expected = [("lab", day, gpu) for number, day in enumerate(DAYS[2:], 3) for gpu in range(100 if number == 5 else number)]
    expected += [("other", day, 0) for day in DAYS[2:]]
    assert rows(lake) == expected
    assert len(packs(open_lake(lake))) == 2
    assert open_lake(lake).pack_facts(AFTER) == 2
    opened = open_lake(lake)
    assert rows(lake) == expected and len(opened.root.names()) == 2
    compute(lake, AFTER, 1)  # the next change says since when the others are out of the lake
    opened = open_lake(lake)
    assert opened.delete_unused_files(timedelta(seconds=-60)) == 62 + 1 + 2
    assert {path.relative_to(lake).as_posix() for path in lake.rglob("*.parquet")} == opened.root.names()


def test_what_somebody_else_changes_meanwhile_stays_theirs(lake: Path) -> None:
    late = open_lake(lake)
    compute(lake, DAYS[4], 100)
    late.pack_facts(AFTER)
    assert [day for _, day, _ in rows(lake)].count(DAYS[4]) == 100 + 1
    with pytest.raises(LakeBusyError), open_lake(lake).change() as change:
        change.write(TABLE, "lab", DAYS[3], pa.table({"gpu": [7]}))
        open_lake(lake).pack_facts(AFTER)


def test_a_damaged_one_is_named_for_each_of_its_days_and_packed_no_more(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_lake(lake).pack_facts(AFTER)
    compute(lake, DAYS[4], 100)
    opened = open_lake(lake)
    [name] = {each.name for _, key, each in opened.root.each() if each.is_packed and key.startswith("lab/")}
    with flipped(lake / name, 800):
        found = damaged_files(opened.storage, opened.root)
        assert [each.key for each in found] == [f"lab/{day}" for day in DAYS if day != DAYS[4]]
        assert open_lake(lake).pack_facts(AFTER) == 0
        with pytest.raises(DamagedError, match=f"{name} of {TABLE}, lab, 2026-10-.. is damaged"):
            rows(lake)
        assert main(["doctor", "--lake", str(lake)], environ={}) == 4
        assert "1 of 3 files of the lake" in capsys.readouterr().err
