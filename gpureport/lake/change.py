"""Replace partitions whole or not at all: write aside, make durable, then move into place.

Parts of an observation (``observed-<time>``) are the exception: they are added beside what the partition holds, and stay when
the rest of it is replaced.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa

from gpureport.errors import LakeError
from gpureport.lake.layout import MARKER, OBSERVED, Lake, is_observation, observation_part, packed_part, partition_folder
from gpureport.lake.pack import join, packable, without_instant
from gpureport.lake.parquet import write_parquet
from gpureport.tables import SCHEMA_VERSION, SOURCE, TABLE_BY_NAME
from gpureport.tables.state import STATE_TABLES
from gpureport.window import to_ms

_STAGING = ".staging"
_OBSERVING = ".observing"
_LOCK = ".lock"


_ABANDONED = ".abandoned"


class LakeBusyError(LakeError):
    """Another gpureport is writing to the lake."""


@dataclass(frozen=True)
class Change:
    """Partitions written aside. Picklable: worker processes may write parts into the same change."""

    lake_path: Path
    staging: Path

    def write(
        self,
        table: str,
        cluster: str,
        day: date,
        rows: pa.Table,
        part: str = "part-0000",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """Stage one part of a partition; the partition will hold the staged parts, its observations and nothing else."""
        with disk_errors(self.lake_path):
            path = self.staging / partition_folder(table, cluster, day) / f"{part}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(rows, path, metadata or {}, TABLE_BY_NAME.get(table))
            _sync(path)

    def observe(self, cluster: str, observed_at: datetime, tables: Mapping[str, pa.Table]) -> None:
        """Stage the state tables of an instant, and what was asked for them; the same instant again replaces what was there."""
        day, part = observed_at.astimezone(UTC).date(), observation_part(observed_at)
        for table in (*STATE_TABLES, SOURCE):
            partition = partition_folder(table.name, cluster, day)
            if table.name not in tables and (self.lake_path / partition / f"{part}.parquet").exists():
                self.write(table.name, cluster, day, table.schema.empty_table(), part)
            packed = self.lake_path / partition / f"{packed_part(day)}.parquet"
            if packed.exists():
                without_instant(table, packed, to_ms(observed_at), self.staging / partition / packed.name)
        for name, rows in tables.items():
            self.write(name, cluster, day, rows, part)

    def abandon(self) -> None:
        """Leave the lake as it is when the block ends."""
        (self.staging / _ABANDONED).touch()


@contextmanager
def staged_change(lake: Lake) -> Iterator[Change]:
    """A change under the lake's lock; see ``Lake.change``."""
    with disk_errors(lake.path), _locked(lake.path), _staged(lake.path, _STAGING) as change:
        yield change
        if not (change.staging / _ABANDONED).exists():
            with _placing(lake.path):
                _move_into_place(lake.path, change.staging)


@contextmanager
def staged_observation(lake: Lake) -> Iterator[Change]:
    """A change that only adds an observation; see ``Lake.observation``."""
    with disk_errors(lake.path):
        lake.path.mkdir(parents=True, exist_ok=True)
        with _placing(lake.path), _staged(lake.path, _OBSERVING) as change:
            yield change
            _move_into_place(lake.path, change.staging)


def pack_observations(lake: Lake, before: date) -> int:
    """Join the observations of every day before this one, a file a table and day; how many files were joined."""
    joined = 0
    with disk_errors(lake.path), _placing(lake.path), _staged(lake.path, _OBSERVING) as change:
        for table, partition, parts in packable(lake, before):
            staged = change.staging / partition_folder(partition.table, partition.cluster, partition.date)
            join(table, partition, parts, staged)
            for file in staged.iterdir():
                _sync(file)
            _swap(staged, lake.path / staged.relative_to(change.staging), change.staging / f".old-{joined}")
            joined += len(parts)
    return joined


def remove_partitions(lake: Lake, partitions: Sequence[Sequence[Path]]) -> None:
    """Remove files, a partition at a time; where they are all that their folder holds, a reader finds them all or none.

    They are moved aside first, into the folder that the next change clears: a run that is killed leaves nothing half-removed.
    """
    if not partitions:
        return
    with disk_errors(lake.path), _locked(lake.path), _placing(lake.path), _staged(lake.path, _STAGING) as change:
        for number, files in enumerate(partitions):
            folder, aside = files[0].parent, change.staging / str(number)
            if set(folder.iterdir()) == set(files):
                folder.rename(aside)
                continue
            aside.mkdir()
            for file in files:
                file.rename(aside / file.name)


@contextmanager
def _staged(lake_path: Path, name: str) -> Iterator[Change]:
    if not (lake_path / MARKER).exists():
        write_marker(lake_path)
    staging = lake_path / name
    shutil.rmtree(staging, ignore_errors=True)  # what a killed run left; nobody reads it
    staging.mkdir()
    try:
        yield Change(lake_path, staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _placing(lake_path: Path) -> Iterator[None]:
    """One at a time moves partitions: an export must not put aside a partition to which an observation is being added.

    Held for moments, so others wait. The lock is on the folder itself.
    """
    folder = os.open(lake_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into a sentence."""
    try:
        yield
    except PermissionError as error:
        raise LakeError(f"the lake at {path} cannot be written ({error.strerror}); give its folder write access") from error
    except OSError as error:
        raise LakeError(f"writing to the lake at {path} failed: {error.strerror or error}; free space, then run again") from error


@contextmanager
def _locked(path: Path, name: str = _LOCK) -> Iterator[None]:
    path.mkdir(parents=True, exist_ok=True)
    with (path / name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeBusyError(f"another gpureport is writing to the lake at {path}; run again when it has ended") from None
        yield


@contextmanager
def changing_in_place(path: Path) -> Iterator[None]:
    """Nobody else changes the lake meanwhile, be it partitions or observations; LakeBusyError where somebody does."""
    with disk_errors(path), _locked(path, ".run.lock"), _locked(path), _placing(path):
        yield


def write_marker(path: Path) -> None:
    """Say of the folder that it is a lake of this version's schema."""
    marker = path / MARKER
    draft = path / f"{MARKER}.draft"
    draft.write_text(json.dumps({"schema_version": SCHEMA_VERSION}) + "\n")
    draft.replace(marker)


def _move_into_place(lake_path: Path, staging: Path) -> None:
    """Two renames a partition: a reader sees the old one, for a moment none, or the new one, never a part of one."""
    trash = staging / ".old"
    for number, staged in enumerate(sorted(staging.glob("**/date=*"))):
        target = lake_path / staged.relative_to(staging)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and all(map(is_observation, staged.iterdir())):
            _move_beside(staged, target)
            continue
        _keep_observations(target, staged)
        trash.mkdir(exist_ok=True)
        _swap(staged, target, trash / str(number))


def _swap(staged: Path, target: Path, aside: Path) -> None:
    _sync(staged)
    if target.exists():
        target.rename(aside)
    staged.rename(target)
    _sync(target.parent)


def _move_beside(staged: Path, target: Path) -> None:
    """One rename a file: each is an observation's rows of a table, whole."""
    for file in staged.iterdir():
        file.rename(target / file.name)
    _sync(target)


def _keep_observations(old: Path, staged: Path) -> None:
    """Copies, so that a run that is killed between the renames has lost nothing."""
    for file in old.glob(f"{OBSERVED}*"):
        if not (staged / file.name).exists():
            shutil.copyfile(file, staged / file.name)
            _sync(staged / file.name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_run(path: Path) -> Iterator[None]:
    """Only one nightly run at a time over a lake; LakeBusyError for a second one."""
    with disk_errors(path), _locked(path, ".run.lock"):
        yield
