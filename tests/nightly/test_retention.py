"""Retention: what is over its age goes, whole days at a time; nothing else does, and nothing that is not gpureport's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.cli import main
from gpureport.errors import LakeError
from gpureport.lake import open_lake
from gpureport.lake.change import staged_change
from gpureport.window import age_ago

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
DAYS = ("2024-11-20", "2024-11-21", "2026-10-21", "2026-10-22", "2026-11-20")
SAMPLES, FACTS = ("device_sample", "series", "pod"), ("facts/device_hour", "source")


def part(lake: Path, table: str, day: str, name: str = "part-0000.parquet", cluster: str = "eu") -> Path:
    return lake / table / f"cluster={cluster}" / f"date={day}" / name


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Days of samples, state and facts, two of them at the edge of either age."""
    path = tmp_path / "lake"
    with staged_change(open_lake(path, create=True)):
        pass
    for day in DAYS:
        for table in (*SAMPLES, *FACTS):
            file = part(path, table, day)
            file.parent.mkdir(parents=True)
            file.write_bytes(b"1234")
    return path


def prune(lake: Path, *flags: str) -> int:
    return main(["prune", "--lake", str(lake), *flags], environ={}, now=NOW)


def held(lake: Path) -> set[tuple[str, str]]:
    return {
        (str(file.relative_to(lake).parents[2]), file.parent.name.removeprefix("date=")) for file in lake.rglob("part-*.parquet")
    }


def test_samples_go_first_and_facts_with_their_source_later(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prune(lake, "--keep-samples", "30d", "--keep-facts", "2y") == 0
    # 30 days before 2026-11-21 is 2026-10-22; two years before it is 2024-11-21: these days are kept.
    assert held(lake) == {
        *((table, day) for table in SAMPLES for day in ("2026-10-22", "2026-11-20")),
        *((table, day) for table in FACTS for day in DAYS[1:]),
    }
    # 3 days of 3 tables and 1 of 2, each of 4 bytes.
    assert "11 days of tables, 0.0 MB, removed" in capsys.readouterr().err
    assert not (lake / ".staging").exists()


def test_a_rehearsal_removes_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = held(lake)
    assert prune(lake, "--keep-samples", "30d", "--dry-run") == 0
    assert held(lake) == before
    assert "9 days of tables, 0.0 MB, would be removed" in capsys.readouterr().err


def test_what_is_not_gpureports_stays_and_is_named(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = part(lake, "pod", "2026-10-21", "notes.txt")
    odd = part(lake, "pod", "2026-10-21", "part-x.parquet")
    foreign = lake / "mine" / "cluster=eu" / "date=2020-01-01" / "part-0000.parquet"
    linked_to = tmp_path / "elsewhere" / "part-0000.parquet"
    for file in (notes, odd, foreign, linked_to):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"mine")
    link = lake / "series" / "cluster=us"
    link.mkdir()
    (link / "date=2020-01-01").symlink_to(linked_to.parent)
    file_link = part(lake, "series", "2026-10-21", "part-0001.parquet")
    file_link.symlink_to(linked_to)
    assert prune(lake, "--keep-samples", "30d", "--keep-facts", "30d") == 0
    told = capsys.readouterr().err
    for file in (notes, odd, foreign, linked_to):
        assert file.read_bytes() == b"mine"
    assert file_link.is_symlink()
    assert "pod/cluster=eu/date=2026-10-21/notes.txt was not written by gpureport, and stays" in told
    assert "part-0001.parquet was not written by gpureport" in told
    assert not part(lake, "pod", "2026-10-21").exists()


def test_a_clock_that_jumped_ahead_does_not_empty_the_lake(lake: Path) -> None:
    flags = ["--keep-samples", "30d", "--keep-facts", "2y"]
    assert main(["prune", "--lake", str(lake), *flags], environ={}, now=datetime(2099, 1, 1, tzinfo=UTC)) == 0
    jumped = held(lake)
    assert prune(lake, *flags) == 0
    assert held(lake) == jumped
    assert ("device_sample", "2026-10-22") in jumped


def test_nothing_is_removed_while_another_run_writes(lake: Path) -> None:
    with staged_change(open_lake(lake)):
        assert prune(lake, "--keep-samples", "30d") == 1
    assert ("pod", "2024-11-20") in held(lake)


def test_a_folder_that_is_no_lake_is_left_alone(tmp_path: Path) -> None:
    file = part(tmp_path, "device_sample", "2020-01-01")
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

    monkeypatch.setattr(Path, "rename", refuse)
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
