"""A folder as power losses may leave it: synced files and synced names survive, and chance decides on the rest.

Renames and syncs are recorded when they happen; files are identified by inode. A file keeps its content of the last sync; a file
without a sync is missing, empty or cut. A folder keeps its names of the last sync, and any of the later changes.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Names = dict[str, int]


@dataclass(frozen=True)
class Moment:
    """The durable state, and the folders, at one time: names by folder, bytes by inode."""

    durable: dict[Path, Names]
    present: dict[Path, Names]
    synced: dict[int, bytes]
    written: dict[int, bytes]

    def leave(self, folder: Path, choice: random.Random) -> None:
        """Write the state after a power loss into a folder."""
        self._leave(Path(), folder, choice)

    def _leave(self, where: Path, folder: Path, choice: random.Random) -> None:
        folder.mkdir()
        names = dict(self.durable.get(where, {}))
        for name in {*names, *self.present.get(where, {})}:
            later = self.present.get(where, {}).get(name)
            if later != names.get(name) and choice.random() < 0.5:
                names = {key: inode for key, inode in names.items() if key != name} | ({name: later} if later else {})
        for name, inode in names.items():
            if where / name in self.present or where / name in self.durable:
                self._leave(where / name, folder / name, choice)
            else:
                self._leave_file(inode, folder / name, choice)

    def _leave_file(self, inode: int, file: Path, choice: random.Random) -> None:
        data = self.synced.get(inode)
        if data is None:
            whole = self.written.get(inode, b"")
            data = choice.choice([b"", whole[: len(whole) // 2], bytes(len(whole))])
        file.write_bytes(data)


@dataclass
class _Disk:
    folder: Path
    moments: list[Moment] = field(default_factory=list)
    durable: dict[Path, Names] = field(default_factory=dict)
    synced: dict[int, bytes] = field(default_factory=dict)

    def take(self) -> None:
        if self.folder.exists():
            folders = [Path(), *(path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_dir())]
            present = {each: self.names(each) for each in folders}
            files = [path for path in self.folder.rglob("*") if path.is_file()]
            written = {path.stat().st_ino: path.read_bytes() for path in files}
            self.moments.append(Moment(dict(self.durable), present, dict(self.synced), written))

    def names(self, folder: Path) -> Names:
        return {path.name: path.stat().st_ino for path in (self.folder / folder).iterdir()}

    def sync(self, path: Path) -> None:
        if path.is_dir():
            self.durable[path.relative_to(self.folder)] = self.names(path.relative_to(self.folder))
        else:
            self.synced[path.stat().st_ino] = path.read_bytes()
        self.take()


_disks: list[_Disk] = []
_is_hooked: list[bool] = []


def _after_rename(event: str, _: object) -> None:
    if _disks and event == "os.rename":
        _disks[-1].take()


@contextmanager
def power_losses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Moment]]:
    """The state at each sync or rename of the block; everything at its start is durable."""
    if not _is_hooked:
        sys.addaudithook(_after_rename)
        _is_hooked.append(True)
    disk, fsync = _Disk(folder), os.fsync
    for path in [folder, *folder.rglob("*")] if folder.exists() else []:
        disk.sync(path)

    def recorded(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(folder):
            disk.sync(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", recorded)
        disk.moments.clear()
        disk.take()
        _disks.append(disk)
        try:
            yield disk.moments
            disk.take()
        finally:
            _disks.remove(disk)
