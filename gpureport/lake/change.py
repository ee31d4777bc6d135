"""Replace partitions whole or not at all: write aside, make durable, then move into place.

Parts of an observation (``observed-<time>``) are the exception: they are added beside what the partition holds, and stay when
the rest of it is replaced.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa

from gpureport.errors import LakeError
from gpureport.lake.layout import MARKER, Lake, observation_part, packed_part, partition_folder
from gpureport.lake.pack import join, packable, without_instant
from gpureport.lake.parquet import write_parquet
from gpureport.lake.placing import disk_errors, place, placing, sync
from gpureport.store import ObjectAddress, Place
from gpureport.tables import SCHEMA_VERSION, SOURCE, TABLE_BY_NAME
from gpureport.tables.state import STATE_TABLES
from gpureport.window import to_ms

_STAGING = ".staging"
_OBSERVING = ".observing"
_LOCK = ".lock"


ABANDONED = ".abandoned"
"""In a change's folder: it is not to be placed."""


class LakeBusyError(LakeError):
    """Another gpureport is writing to the lake, or wrote what this one was about to."""


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
            sync(path)

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
        (self.staging / ABANDONED).touch()


@contextmanager
def staged_change(lake: Lake) -> Iterator[Change]:
    """A change under the lake's lock; see ``Lake.change``."""
    with disk_errors(lake.path), _locked(lake.path), _staged(lake.path, _STAGING) as change:
        yield change
        if not (change.staging / ABANDONED).exists():
            with placing(lake.path):
                place(lake.path, change.staging)


@contextmanager
def staged_observation(lake: Lake) -> Iterator[Change]:
    """A change that only adds an observation; see ``Lake.observation``."""
    with disk_errors(lake.path):
        lake.path.mkdir(parents=True, exist_ok=True)
        with placing(lake.path), _staged(lake.path, _OBSERVING) as change:
            yield change
            place(lake.path, change.staging)


def pack_observations(lake: Lake, before: date) -> int:
    """Join the observations of every day before this one, a file a table and day; how many files were joined."""
    joined = 0
    with disk_errors(lake.path), placing(lake.path), _staged(lake.path, _OBSERVING) as change:
        for table, partition, parts in packable(lake, before):
            staged = change.staging / partition_folder(partition.table, partition.cluster, partition.date)
            join(table, partition, parts, staged)
            for file in staged.iterdir():
                sync(file)
            joined += len(parts)
        if joined:
            place(lake.path, change.staging, is_replacing=True)
    return joined


def remove_partitions(lake: Lake, partitions: Sequence[Sequence[Path]]) -> None:
    """Remove files, a partition at a time; where they are all that their folder holds, a reader finds them all or none.

    They are moved aside first, into the folder that the next change clears: a run that is killed leaves nothing half-removed.
    """
    if not partitions:
        return
    with disk_errors(lake.path), _locked(lake.path), placing(lake.path), _staged(lake.path, _STAGING) as change:
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
    with disk_errors(path), _locked(path, ".run.lock"), _locked(path), placing(path):
        yield


def write_marker(path: Path) -> None:
    """Say of the folder that it is a lake of this version's schema."""
    marker = path / MARKER
    draft = path / f".{MARKER}.draft"  # hidden: a folder that holds nothing else may still become a lake
    draft.write_text(json.dumps({"schema_version": SCHEMA_VERSION}) + "\n")
    draft.replace(marker)


@contextmanager
def exclusive_run(place: Place) -> Iterator[None]:
    """Only one nightly run at a time over a lake; LakeBusyError for a second one.

    On object storage that is of this machine; one of another machine loses when it changes what this one did.
    """
    path = place.cache if isinstance(place, ObjectAddress) else place
    with disk_errors(path), _locked(path, ".run.lock"):
        yield
