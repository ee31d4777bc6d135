"""Move what was staged into place: all of it or nothing, also where the process is killed between two moves.

What is complete becomes ``.placing`` by one rename. From then on it will be placed: by whoever opens the lake next, if not by its
writer. Partitions that were replaced are removed only when all is in place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpureport.errors import LakeError
from gpureport.lake.layout import OBSERVED, PLACING, is_observation

_REPLACES = ".replaces"
_OLD = ".old"


@contextmanager
def placing(lake_path: Path) -> Iterator[None]:
    """One at a time moves partitions: an export must not put aside a partition to which an observation is being added.

    Held for moments, so others wait. The lock is on the folder itself. What a killed process left ready is placed first.
    """
    folder = os.open(lake_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _complete(lake_path)
        yield
    finally:
        os.close(folder)


def place(lake_path: Path, staging: Path, is_replacing: bool = False) -> None:
    """Put staged partitions into the lake, within ``placing``.

    Each comes in place of the old one, whose observations it keeps; one of observations alone is added to what is there, unless
    it is to replace that (``is_replacing``).
    """
    if is_replacing:
        (staging / _REPLACES).touch()
    for staged in _partitions(staging):
        if not is_replacing:
            _keep_observations(lake_path / staged.relative_to(staging), staged)
        sync(staged)
    staging.rename(lake_path / PLACING)
    sync(lake_path)
    _complete(lake_path)


def settle(lake_path: Path) -> None:
    """Wait for moves that are under way, and end those of a process that was killed. LakeError where the disk refuses."""
    if (lake_path / PLACING).exists():
        with disk_errors(lake_path), placing(lake_path):
            pass


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into a sentence."""
    try:
        yield
    except PermissionError as error:
        raise LakeError(f"the lake at {path} cannot be written ({error.strerror}); give its folder write access") from error
    except OSError as error:
        raise LakeError(f"writing to the lake at {path} failed: {error.strerror or error}; free space, then run again") from error


def _complete(lake_path: Path) -> None:
    """Two renames a partition: a reader sees the old one, for a moment none, or the new one, never a part of one."""
    ready = lake_path / PLACING
    if not ready.exists():
        return
    shutil.rmtree(ready / _OLD, ignore_errors=True)  # put aside by a process that was killed; what comes in its place is here
    is_adding = not (ready / _REPLACES).exists()
    for number, staged in enumerate(_partitions(ready)):
        target = lake_path / staged.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_adding and target.exists() and all(map(is_observation, staged.iterdir())):
            _move_beside(staged, target)
        else:
            _swap(staged, target, ready / _OLD / str(number))
    shutil.rmtree(ready)


def _partitions(staging: Path) -> list[Path]:
    return sorted(staging.glob("**/date=*"))


def _swap(staged: Path, target: Path, aside: Path) -> None:
    if target.exists():
        aside.parent.mkdir(exist_ok=True)
        target.rename(aside)
    staged.rename(target)
    sync(target.parent)


def _move_beside(staged: Path, target: Path) -> None:
    """One rename a file: each is an observation's rows of a table, whole."""
    for file in staged.iterdir():
        file.rename(target / file.name)
    sync(target)


def _keep_observations(old: Path, staged: Path) -> None:
    if all(map(is_observation, staged.iterdir())):
        return
    for file in old.glob(f"{OBSERVED}*"):
        if not (staged / file.name).exists():
            shutil.copyfile(file, staged / file.name)
            sync(staged / file.name)
