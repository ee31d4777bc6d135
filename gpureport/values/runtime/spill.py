"""Temporary folders of one process. The next process that needs one deletes the folders of killed processes."""

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
    """Yield an empty folder in the machine's temporary folder. It is deleted when the block ends."""
    with private_folder(Path(gettempdir()), _SPILL) as folder:
        yield folder


@contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty folder inside ``parent``. It is deleted when the block ends.

    A lock on the folder marks it as in use. The kernel releases the lock when the process ends for any reason.
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
    """Create and lock a folder. Retry where another process deleted it as abandoned before it was locked."""
    while True:
        folder = Path(mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_if_abandoned(folder: Path) -> None:
    """Delete the folder where no process holds its lock. Another user's folder stays."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)
