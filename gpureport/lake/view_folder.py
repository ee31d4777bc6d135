"""Folders of this machine in which a process has the files of a lake that it asked for; those of dead processes are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from secrets import token_hex

from gpureport.lake.change import write_marker


def open_view(views: Path) -> tuple[Path, int]:
    """A new folder, which looks like a lake, and the descriptor by whose lock others know that it is in use."""
    views.mkdir(parents=True, exist_ok=True)
    all_of_them = os.open(views, os.O_RDONLY)
    try:
        fcntl.flock(all_of_them, fcntl.LOCK_EX)
        for folder in views.iterdir():
            _remove_unless_used(folder)
        own = views / token_hex(8)
        own.mkdir()
        write_marker(own)
        lock = os.open(own, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return own, lock
    finally:
        os.close(all_of_them)


def close_view(folder: Path, lock: int, pid: int) -> None:
    """Remove a folder; not by a process that was forked from the one that uses it."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_unless_used(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
