"""A report's files are written aside and moved into their folder when all are there, by one report at a time.

Nobody who looks meanwhile reads half of a file, and one who looks later finds no file of an earlier report beside the new ones.
While files of two reports may lie there, one more file says so; where a report was killed amid the moves it stays until the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpureport.compute.query import load

NOTICE = "FILES-OF-TWO-REPORTS.txt"
_ASIDE = ".writing"
_FORMS = ("report.html", "report.json", "gpureport.duckdb")
_NOTICED = (
    "The files here may be from two reports: one is being moved here, or was killed during the move. If none is running, write "
    "the report again.\n"
)


@contextmanager
def aside(out: Path) -> Iterator[Path]:
    """An empty folder within ``out``, gone when the block ends; what a report that was killed left there is removed first.

    Another report that writes into the same folder is waited for.
    """
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        for left in out.glob(f"{_ASIDE}*"):
            shutil.rmtree(left)
        folder = out / _ASIDE
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def place(written: Sequence[Path], folder: Path, out: Path) -> list[Path]:
    """Move the files into ``out``, the first of them last, for it leads to the others; their new paths in the given order.

    Tables and pages that an earlier report had and this one has not are removed: nobody is to take them for this one's.
    Until all of that is done ``NOTICE`` lies beside them.
    """
    (out / NOTICE).write_text(_NOTICED, encoding="utf-8")
    placed = [out / path.relative_to(folder) for path in written]
    for path, target in reversed(list(zip(written, placed, strict=True))):
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    for stale in _of_earlier(out) - set(placed):
        stale.unlink()
        if not any(stale.parent.iterdir()):
            stale.parent.rmdir()
    (out / NOTICE).unlink(missing_ok=True)
    return placed


def _of_earlier(out: Path) -> set[Path]:
    """The forms and pages that a report may lack, and tables by the names that it knows; other files are somebody's."""
    tables = {table.removeprefix("report.") for table in load()}
    found = (path for name in ("csv/*.csv", "tables/*.parquet") for path in out.glob(name))
    forms = {path for name in _FORMS if (path := out / name).is_file()}
    return {*forms, *out.glob("by/*.html"), *(path for path in found if path.stem in tables)}


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the lock on the folder itself."""
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
