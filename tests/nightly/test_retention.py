"""Retention: what is over its age goes, whole days at a time; nothing else does, and nothing that is not gpureport's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_lake_killed import rows

from gpureport.cli import main
from gpureport.lake import open_lake
from gpureport.values.errors import LakeError
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.window import age_ago

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
DAYS = ("2024-11-20", "2024-11-21", "2026-10-21", "2026-10-22", "2026-11-20")
SAMPLES, FACTS = ("device_sample", "series", "pod"), ("facts/device_hour", "source")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Days of samples, state and facts, two of them at the edge of either age."""
    path = tmp_path / "lake"
    with open_lake(path, create=True).change() as change:
        for day in DAYS:
            for table in (*SAMPLES, *FACTS):
                known = TABLE_BY_NAME.get(table)
                change.write(table, "eu", date.fromisoformat(day), rows(known, 1) if known else pa.table({"n": [1]}))
    return path


def prune(lake: Path, *flags: str) -> int:
    return main(["prune", "--lake", str(lake), *flags], environ={}, now=NOW)


def held(lake: Path) -> set[tuple[str, str]]:
    opened = open_lake(lake)
    return {(table, str(each.date)) for table in opened.tables() for each in opened.partitions(table)}


def test_samples_go_first_and_facts_with_their_source_later(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prune(lake, "--keep-samples", "30d", "--keep-facts", "2y") == 0
    # 30 days before 2026-11-21 is 2026-10-22; two years before it is 2024-11-21: these days are kept.
    assert held(lake) == {
        *((table, day) for table in SAMPLES for day in ("2026-10-22", "2026-11-20")),
        *((table, day) for table in FACTS for day in DAYS[1:]),
    }
    # 3 days of 3 tables and 1 of 2.
    assert "11 days of tables, 0.1 MB, removed" in capsys.readouterr().err


def test_samples_that_outlive_facts_keep_their_source_without_which_they_cannot_be_computed(lake: Path) -> None:
    assert prune(lake, "--keep-facts", "30d") == 0
    kept = {(table, day) for table in (*SAMPLES, "source") for day in DAYS}
    assert held(lake) == kept | {("facts/device_hour", day) for day in DAYS[3:]}


def test_a_rehearsal_removes_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = held(lake)
    assert prune(lake, "--keep-samples", "30d", "--dry-run") == 0
    assert held(lake) == before
    assert "9 days of tables, 0.1 MB, would be removed" in capsys.readouterr().err


def test_a_clock_that_jumped_ahead_does_not_empty_the_lake(lake: Path) -> None:
    flags = ["--keep-samples", "30d", "--keep-facts", "2y"]
    assert main(["prune", "--lake", str(lake), *flags], environ={}, now=datetime(2099, 1, 1, tzinfo=UTC)) == 0
    jumped = held(lake)
    assert prune(lake, *flags) == 0
    assert held(lake) == jumped
    assert ("device_sample", "2026-10-22") in jumped


def test_a_folder_that_is_no_lake_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "device_sample" / "cluster=eu" / "date=2020-01-01" / "part-0000.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"mine")
    assert prune(tmp_path, "--keep-samples", "1d") == 1
    assert file.exists()


@pytest.mark.parametrize(
    "flags", [(), ("--keep-samples", "30"), ("--keep-facts", "-1d"), ("--keep-facts", "0d"), ("--keep-facts", "1h")]
)
def test_an_age_that_is_none_is_a_usage_error(lake: Path, flags: tuple[str, ...]) -> None:
    before = held(lake)
    assert prune(lake, *flags) == 2
    assert held(lake) == before


def test_a_full_or_broken_disk_costs_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = held(lake)

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    from gpureport.config import Retention
    from gpureport.lake.retention import prune as prune_lake

    with pytest.raises(LakeError, match="No space left"):
        prune_lake(open_lake(lake), Retention(keep_samples="1d"), NOW.date())
    monkeypatch.undo()
    assert held(lake) == before


@given(st.dates(date(2004, 1, 1), date(2199, 1, 1)), st.integers(1, 4))
def test_years_are_of_the_calendar(today: date, years: int) -> None:
    kept = age_ago(today, f"{years}y")
    assert (kept.year, kept.month) == (today.year - years, today.month)
    assert kept.day == today.day or (today.month, today.day, kept.day) == (2, 29, 28)
    assert age_ago(today, "2w") == age_ago(today, "14d")
