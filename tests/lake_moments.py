"""Copies of a folder at each step of a block: the state that SIGKILL would leave, without a kill."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CHANGES = {"os.rename", "os.remove", "os.truncate", "shutil.rmtree", "shutil.copyfile"}


@dataclass
class _Watch:
    """While it is on, copies a folder before each change of it."""

    folder: Path
    copies: Path
    found: list[Path] = field(default_factory=list)
    is_busy: bool = False

    def take(self) -> None:
        if self.is_busy or not self.folder.exists():
            return
        self.is_busy = True
        copy = self.copies / f"{len(self.found):04}"
        shutil.copytree(self.folder, copy)
        self.found.append(copy)
        self.is_busy = False


_watches: list[_Watch] = []


def _before_change(event: str, _: object) -> None:
    """An audit hook, which Python never removes: it does nothing while no watch is on."""
    if _watches and event in CHANGES:
        _watches[-1].take()


_is_hooked: list[bool] = []


@contextmanager
def moments(folder: Path, copies: Path) -> Iterator[list[Path]]:
    """Copies of the folder, one before each rename, copy and removal of the block; complete when it ends."""
    if not _is_hooked:
        sys.addaudithook(_before_change)
        _is_hooked.append(True)
    copies.mkdir()
    watch = _Watch(folder, copies)
    _watches.append(watch)
    try:
        yield watch.found
    finally:
        _watches.remove(watch)
