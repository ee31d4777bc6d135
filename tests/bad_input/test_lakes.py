"""Lakes that are not there, not ours, damaged, or in use."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from lake_rows import files

from gpureport.cli import main
from gpureport.lake.root import ROOT

from .samples import CONFIG, DAY, FAILURE, GOOD, NOW, Refused, metrics, write


@pytest.mark.parametrize("command", [["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]])
def test_a_lake_that_is_not_there_is_named_and_not_made(command: list[str], refused: Refused, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert str(nowhere) in refused(FAILURE, *command, at=nowhere)
    assert not nowhere.exists()


@pytest.mark.parametrize(("place", "message"), [("nowhere", "there is no lake at"), ("notes", "is not a gpureport lake")])
def test_a_place_without_a_lake_is_not_migrated_and_says_whether_it_is_there(
    place: str, message: str, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    assert message in refused(FAILURE, "migrate", at=tmp_path / place)


COMMANDS = [["import", "good.txt"], ["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_lake_of_a_newer_schema_is_left_alone(
    command: list[str], refused: Refused, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.txt", metrics(*GOOD))
    (lake / ROOT).write_bytes(gzip.compress(b'{"schema_version": 99}'))
    assert "upgrade gpureport" in refused(FAILURE, *command)


def test_a_lake_with_a_damaged_root_is_left_alone(refused: Refused, lake: Path) -> None:
    whole = (lake / ROOT).read_bytes()
    broken = (b"", whole[: len(whole) // 2], whole[:-1], b"{}", gzip.compress(b"[]"), gzip.compress(b'{"schema_version": "x"}'))
    for data in broken:
        (lake / ROOT).write_bytes(data)
        assert f"{ROOT} is damaged" in refused(FAILURE, "compute", "--date", DAY)


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


def test_team_pages_of_days_without_facts_name_the_days(refused: Refused, tmp_path: Path) -> None:
    lake = tmp_path / "sampled"
    assert main(["import", str(write(tmp_path / "good.txt", metrics(*GOOD))), "--lake", str(lake)], environ={}, now=NOW) == 0
    for by in ("team", "namespace"):
        assert f"no facts yet for {DAY}; run 'gpureport compute'" in refused(
            FAILURE, "report", "--since", DAY, "--by", by, "--out", tmp_path / "out", at=lake
        )


def test_no_lake_is_made_for_a_cluster_that_cannot_have_its_name(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "good.txt", metrics(*GOOD))
    for name in ("a/b", "..", "", "a b", "x" * 101):
        assert "at most 100 of them" in refused(CONFIG, "import", file, "--cluster", name, at=tmp_path / "none")
    assert not (tmp_path / "none").exists()


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
    [damaged] = files(lake, table)
    damaged.write_bytes(damaged.read_bytes()[:300])
    assert f"{damaged.name} of {table}, lab, {DAY} is damaged" in refused(FAILURE, *command)


def test_a_file_that_is_missing_is_named(refused: Refused, lake: Path) -> None:
    [missing] = files(lake, "device_sample")
    missing.unlink()
    assert f"{missing.name} of device_sample, lab, {DAY} is missing" in refused(FAILURE, "compute", "--date", DAY)
