"""Disks that fill up, and folders that may not be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from full_disk import full_disk

from gpureport.cli import main
from gpureport.commands.work import delivering

from .samples import DAY, FAILURE, GOOD, NOW, USAGE, Refused, assert_one_sentence, digests, metrics, scrape, write

CHILD = """
import os, sys
from datetime import datetime, UTC
from gpureport.cli import main
uid, *arguments = sys.argv[1:]
main([*arguments[:arguments.index("--lake") + 1], "warm", *arguments[arguments.index("--lake") + 2:]], environ={})
sys.stderr.flush()
print("READY", file=sys.stderr, flush=True)
if int(uid):
    os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
sys.exit(main(arguments, environ={}, now=datetime(2026, 11, 21, 12, tzinfo=UTC)))
"""


def child(folder: Path, arguments: Sequence[str], uid: int) -> subprocess.CompletedProcess[str]:
    """The command as another user, in a process that has done it with the lake ``warm`` before."""
    command = [sys.executable, "-c", CHILD, str(uid), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def more_samples(folder: Path) -> Path:
    lines = [scrape("DEV_POWER_USAGE", 900 + n, n * n % 9973 / 7) for n in range(20_000)]
    return write(folder / "more.txt", metrics(*lines))


def test_a_disk_that_fills_up_during_import_leaves_the_lake_as_it_was(refused: Refused, lake: Path, tmp_path: Path) -> None:
    file = more_samples(tmp_path)
    with full_disk(20_000):
        assert "lake" in refused(FAILURE, "import", file, "--cluster", "lab")
    assert main(["import", str(file), "--cluster", "lab", "--lake", str(lake)], environ={}, now=NOW) == 0


def test_a_disk_that_fills_up_during_compute_leaves_the_lake_as_it_was(refused: Refused) -> None:
    with full_disk(2_000):
        refused(FAILURE, "compute", "--date", DAY)


@pytest.mark.parametrize(("limit", "where"), [(20_000, "TMPDIR"), (400_000, "--out")])
def test_a_disk_that_fills_up_during_report_says_so(limit: int, where: str, refused: Refused, tmp_path: Path) -> None:
    with full_disk(limit):
        assert where in refused(FAILURE, "report", "--since", DAY, "--out", tmp_path / "out")


def test_a_report_that_cannot_be_written_names_the_folder_and_not_the_lake(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "taken", "")
    sentence = refused(USAGE, "report", "--since", DAY, "--out", file)
    assert "taken is a file; give a folder for the report" in sentence


def test_a_lake_that_may_not_be_written_is_named(lake: Path, tmp_path: Path) -> None:
    is_root = os.geteuid() == 0
    if is_root and not open_to_others(Path(__file__)):
        pytest.skip("another user cannot read this checkout")
    write(tmp_path / "good.txt", metrics(*GOOD[:3]))
    shutil.copytree(lake, tmp_path / "warm")
    set_writable(lake, False)
    tmp_path.chmod(0o755)
    before = digests(lake)
    try:
        done = child(tmp_path, ["import", "good.txt", "--cluster", "lab", "--lake", "lake"], uid=65_534 if is_root else 0)
    finally:
        set_writable(lake, True)
    assert done.returncode == FAILURE, done.stderr
    sentence = done.stderr.partition("READY\n")[2]
    assert_one_sentence(sentence)
    assert "write access" in sentence
    assert digests(lake) == before


def open_to_others(path: Path) -> bool:
    """Whether any user may reach the path and the interpreter."""
    return all(parent.stat().st_mode & 0o005 == 0o005 for each in (path, Path(sys.executable)) for parent in each.parents)


def set_writable(lake: Path, is_writable: bool) -> None:
    for path in [lake, *lake.rglob("*")]:
        path.chmod((0o755 if path.is_dir() else 0o644) if is_writable else (0o555 if path.is_dir() else 0o444))


def test_a_damaged_note_on_what_a_report_is_made_of_is_no_crash(tmp_path: Path) -> None:
    write(tmp_path / "report.html", "")
    (tmp_path / ".made-of").write_bytes(b"\xff\xfe")
    assert not delivering.has_input_digest(tmp_path, "this")
