"""Folders of one process, for what it spills or stages; those that killed processes left are removed by who needs one next."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

_SPILL = "gpureport-spill-"


@contextmanager
def spill_folder() -> Iterator[Path]:
    """An empty folder within the machine's folder of temporary files, gone when the block ends."""
    with private_folder(Path(gettempdir()), _SPILL) as folder:
        yield folder


@contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """An empty folder within another, gone when the block ends.

    A lock on the folder shows that somebody is using it. The kernel lifts it when its process ends, however it ends.
    """
    for left in parent.glob(f"{prefix}*"):
        _remove_if_abandoned(left)
    folder, lock = _locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and its lock; another one where somebody took it for abandoned before it was locked."""
    while True:
        folder = Path(mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove it where nobody holds its lock; another user's folder is left to that user."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)
