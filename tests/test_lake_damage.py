"""A bit that flips anywhere in a lake is named, with the command that repairs it, and never changes a figure."""

from __future__ import annotations

import random
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from golden_case import MINUTES
from lake_rows import files, seen
from msgspec import structs

from gpureport.cli import main
from gpureport.lake import DamagedError, open_lake
from gpureport.lake.migrate import migrate
from gpureport.lake.root import ROOT, Replaced, Stored, encode_root
from gpureport.values.errors import LakeError

OLDER = Path(__file__).parent / "older"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = "2026-11-20"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of a computed day and of a snapshot."""
    folder = tmp_path_factory.mktemp("whole")
    with tarfile.open(OLDER / "folder.tgz") as archive:
        archive.extractall(folder, filter="data")
    migrate(folder / "lake")
    return folder / "lake"


@pytest.fixture
def lake(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "lake")


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    yield
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def command(lake: Path, *arguments: str) -> int:
    return main([*arguments, "--lake", str(lake)], environ={}, now=NOW)


def test_every_flipped_bit_is_named_or_without_effect(lake: Path, flips: int) -> None:
    """Over all files by size, the root among them."""
    choice, before = random.Random(20261122), seen(lake)
    stored = {lake / each.name: (table, key.replace("/", ", ")) for table, key, each in open_lake(lake).root.each()}
    everything = [lake / ROOT, *stored]
    for file in choice.choices(everything, [each.stat().st_size for each in everything], k=flips):
        with flipped(file, choice.randrange(8 * file.stat().st_size)):
            try:
                found = seen(lake)
            except DamagedError as error:
                table, where = stored[file]
                assert f"{file} of {table}, {where} is damaged" in str(error)
            except LakeError as error:
                assert f"{lake / ROOT} is damaged" in str(error)
            else:
                assert found == before and file == lake / ROOT
    assert seen(lake) == before


def test_a_report_of_damaged_facts_ends_with_their_name_and_doctor_repairs_them(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = shutil.copytree(recorded / "lake", tmp_path / "lake")
    [file] = files(lake, "facts/power_hour")
    with flipped(file, 8 * (file.stat().st_size // 2)):
        assert command(lake, "report", *MINUTES, "--out", str(tmp_path / "out")) == 1
        assert f"{file.name} of facts/power_hour, lab, {DAY} is damaged" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
        assert command(lake, "doctor", "-o", "csv") == 4
        told = capsys.readouterr()
        rows = told.out.splitlines()
        assert rows[0] == "table,cluster,date,file,damage,repair" and len(rows) == 2
        assert rows[1].startswith(f"facts/power_hour,lab,{DAY},{file.relative_to(lake)},is damaged")
        assert f"gpureport compute --date {DAY} --lake {lake}" in rows[1]
        assert command(lake, "doctor", "--repair") == 0
        assert command(lake, "doctor") == 0
        assert "files of the lake" in capsys.readouterr().err


def test_damaged_samples_and_snapshots_are_taken_out_of_the_lake_by_repair(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in ("device_sample", "pod"):
        [file] = files(lake, table)
        file.write_bytes(b"")
    assert command(lake, "doctor", "--repair") == 0
    assert f"export or import again: h200-recording {DAY}" in capsys.readouterr().err
    opened = open_lake(lake)
    assert not opened.partitions("device_sample") and not opened.partitions("series") and not opened.partitions("pod")
    assert opened.partitions("facts/device_hour") and opened.partitions("node")
    assert command(lake, "doctor") == 0


def test_repair_wants_a_lake_alone(lake: Path) -> None:
    assert command(lake, "doctor", "--repair", "--date", DAY) == 2
    assert main(["doctor", "--repair"], environ={}, now=NOW) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"notes": {"lab": {}}},
        {"files": {"facts/node_day": {"lab/today": ()}}},
        {"files": {"facts/node_day": {f"lab/{DAY}": (Stored("../precious", 1, 1, ""),)}}},
        {"replaced": (Replaced(("../precious",), 0),)},
    ],
)
def test_a_root_that_names_no_day_or_what_is_outside_of_the_lake_is_damaged(
    lake: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]
) -> None:
    precious = lake.parent / "precious"
    precious.touch()
    (lake / ROOT).write_bytes(encode_root(structs.replace(open_lake(lake).root, **wrong)))
    for arguments in (["report", *MINUTES, "--out", str(lake.parent / "out")], ["prune", "--keep-samples", "1d"]):
        assert command(lake, *arguments) == 1
        [said] = capsys.readouterr().err.splitlines()
        assert f"{lake / ROOT} is damaged" in said
    assert precious.exists()
