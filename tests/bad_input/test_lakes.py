"""Lakes that are not there, not ours, damaged, or in use."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from .samples import DAY, FAILURE, GOOD, Refused, metrics, write


@pytest.mark.parametrize("command", [["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]])
def test_a_lake_that_is_not_there_is_named_and_not_made(command: list[str], refused: Refused, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert str(nowhere) in refused(FAILURE, *command, at=nowhere)
    assert not nowhere.exists()


COMMANDS = [["import", "good.txt"], ["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_lake_of_a_newer_schema_is_left_alone(
    command: list[str], refused: Refused, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.txt", metrics(*GOOD))
    write(lake / "gpureport-lake.json", json.dumps({"schema_version": 99}))
    assert "upgrade gpureport" in refused(FAILURE, *command)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": null}', '{"schema_version": "x"}'])
def test_a_lake_with_a_broken_marker_is_left_alone(text: str, refused: Refused, lake: Path) -> None:
    write(lake / "gpureport-lake.json", text)
    assert "gpureport-lake.json" in refused(FAILURE, "compute", "--date", DAY)


def test_a_folder_that_is_no_lake_is_not_read_as_one(refused: Refused, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "notes.txt", "mine")
    assert "not a gpureport lake" in refused(FAILURE, "compute", "--date", DAY, at=other)


def test_a_folder_with_somebodys_files_does_not_become_a_lake(refused: Refused, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "notes.txt", "mine")
    assert str(other) in refused(FAILURE, "import", write(tmp_path / "good.txt", metrics(*GOOD)), at=other)
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


def test_a_lake_that_another_process_writes_to_is_left_to_it(refused: Refused, lake: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "good.txt", metrics(*GOOD))
    with (lake / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "run again" in refused(FAILURE, "import", file, "--cluster", "lab")


def test_a_file_in_the_lakes_place_is_named(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "good.txt", metrics(*GOOD))
    assert "folder" in refused(FAILURE, "import", file, at=file)


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("device_sample", ["compute", "--date", DAY]),
        ("raw_sample", ["import", "good.txt", "--cluster", "lab"]),
        ("facts/device_hour", ["report", "--since", DAY]),
        ("device_sample", ["sql", "from lake.device_sample"]),
    ],
    ids=["compute", "import", "report", "sql"],
)
def test_a_damaged_file_of_the_lake_is_named(
    table: str, command: list[str], refused: Refused, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.txt", metrics(*GOOD))
    [damaged] = (lake / table).rglob("*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:300])
    assert "part-0000.parquet" in refused(FAILURE, *command)


def test_a_folder_that_is_no_day_is_named(refused: Refused, lake: Path) -> None:
    stray = lake / "device_sample" / "cluster=lab" / "date=garbage"
    stray.mkdir()
    write(stray / "part-0000.parquet", "")
    assert "date=garbage" in refused(FAILURE, "compute", "--date", DAY)
