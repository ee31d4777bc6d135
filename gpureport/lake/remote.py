"""A lake on object storage: read through a folder of this machine that holds the files that somebody asked for.

To everything that reads it is a lake on disk, whose partitions are fetched when their files are asked for. A change is staged in
that folder, uploaded, and becomes part of the lake with one object, the root (``gpureport.lake.manifest``).
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import pyarrow as pa

from gpureport.errors import LakeError
from gpureport.lake.change import ABANDONED, Change
from gpureport.lake.layout import (
    FileSize,
    Holdings,
    Lake,
    Partition,
    check_version,
    observation_part,
    packed_part,
    partition_folder,
)
from gpureport.lake.manifest import CHANGES, ROOT, Held, Index, Root, day_key, file_name
from gpureport.lake.pack import packable, write_packed
from gpureport.lake.publishing import Edit, publish, staged_edits
from gpureport.lake.stock import Stock, Wanted
from gpureport.lake.sweeping import sweep
from gpureport.lake.view_folder import close_view, open_view
from gpureport.store import Bucket, ObjectAddress
from gpureport.store.refusal import store_errors
from gpureport.store.turn import TURNS, knows_conditions
from gpureport.tables import SCHEMA_VERSION, SOURCE
from gpureport.tables.state import STATE_TABLES


class _Kept(Partition):
    """A partition whose files are fetched when they are asked for. A pickle of it holds their paths."""

    def __init__(self, table: str, cluster: str, day: date, held: Held, fetch: Callable[[], tuple[Path, ...]]) -> None:
        for name, value in (("table", table), ("cluster", cluster), ("date", day), ("held", held), ("fetch", fetch)):
            object.__setattr__(self, name, value)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        return self.fetch()

    @property
    def observation_count(self) -> int:
        return self.held.observation_count

    def __reduce__(self) -> tuple[Any, ...]:
        return Partition, (self.table, self.cluster, self.date, self.files)

    held: Held
    fetch: Callable[[], tuple[Path, ...]]


@dataclass(frozen=True)
class _Observation(Change):
    """An observation's change: what the lake holds of that instant is fetched before it is written anew."""

    lake: RemoteLake

    def observe(self, cluster: str, observed_at: datetime, tables: Mapping[str, pa.Table]) -> None:
        day = observed_at.astimezone(UTC).date()
        names = {f"{part}.parquet" for part in (observation_part(observed_at), packed_part(day))}
        for table in (*STATE_TABLES, SOURCE):
            self.lake.fetch(table.name, cluster, day, names)
        super().observe(cluster, observed_at, tables)


@dataclass(frozen=True)
class RemoteLake(Lake):
    """A lake on object storage as it was when it was opened, and with what was changed through it since."""

    stock: Stock
    roots: list[Root]
    """The one that is read; a list, for a change puts another one in its place."""

    def __str__(self) -> str:
        return str(self.stock.address)

    @property
    def root(self) -> Root:
        """What the lake holds."""
        return self.roots[0]

    def tables(self) -> list[str]:
        """See ``Lake``."""
        return sorted({table for day in self.root.days.values() for table in day.tables})

    def partitions(self, table: str) -> list[Partition]:
        """Every partition of a table; the files of one are fetched when they are asked for."""
        return list(self._partitions(table))

    def _partitions(self, table: str) -> Iterator[_Kept]:
        for key, day in sorted(self.root.days.items()):
            if table in day.tables:
                cluster, _, text = key.partition("/")
                at = date.fromisoformat(text)
                yield _Kept(table, cluster, at, day.tables[table], partial(self.fetch, table, cluster, at))

    def fetch(self, table: str, cluster: str, day: date, names: Collection[str] | None = None) -> tuple[Path, ...]:
        """Files of a partition, all or those of these names, as far as there are any."""
        wanted = self._wanted(table, cluster, day, names)
        self.stock.bring(wanted)
        return tuple(each.target for each in wanted)

    def bring(self, partitions: Iterable[Partition]) -> None:
        """All at once, for many small files one after the other take long."""
        chosen = list(partitions)
        keys = {day_key(each.cluster, each.date) for each in chosen}
        self.stock.bucket.each(self._index, keys)
        self.stock.bring([wanted for each in chosen for wanted in self._wanted(each.table, each.cluster, each.date)])

    def _wanted(self, table: str, cluster: str, day: date, names: Collection[str] | None = None) -> list[Wanted]:
        folder = self.path / partition_folder(table, cluster, day)
        files = self._index(day_key(cluster, day)).get(table, {})
        return [
            Wanted(file_name(stored.change, table, cluster, day, name), stored.sha256, folder / name)
            for name, stored in sorted(files.items())
            if names is None or name in names
        ]

    def _index(self, key: str) -> Index:
        day = self.root.days.get(key)
        return self.stock.read_index(day) if day else {}

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Stage new partitions; all become part of the lake with one object. LakeBusyError where another replaced their day."""
        with self._staging() as (staging, change):
            yield Change(self.path, staging)
            if not (staging / ABANDONED).exists():
                self._publish(staged_edits(staging), change)

    @contextmanager
    def observation(self) -> Iterator[Change]:
        """Stage an observation's parts; they are added whatever others do meanwhile."""
        with self._staging() as (staging, change):
            yield _Observation(self.path, staging, self)
            self._publish(staged_edits(staging), change)

    def pack_observations(self, before: date) -> int:
        """See ``Lake``."""
        joined = 0
        with self._staging() as (staging, change):
            edits = []
            for table, partition, parts in packable(self, before):
                folder = staging / partition_folder(partition.table, partition.cluster, partition.date)
                packed = write_packed(table, partition, parts, folder)
                gone = frozenset(part.name for part in parts)
                edits.append(Edit(table.name, partition.cluster, partition.date, (packed,), gone))
                joined += len(parts)
            self._publish(edits, change)
        return joined

    def sizes(self, partition: Partition) -> list[FileSize]:
        """See ``Lake``; nothing is fetched."""
        files = self._index(day_key(partition.cluster, partition.date)).get(partition.table, {})
        return [FileSize(name, each.byte_count, each.row_count) for name, each in sorted(files.items())]

    def holdings(self, partition: Partition) -> Holdings:
        """See ``Lake``; nothing else is part of a lake on object storage."""
        held = self.root.days[day_key(partition.cluster, partition.date)].tables[partition.table]
        return Holdings(held.file_count, held.byte_count)

    def remove(self, partitions: Sequence[Partition]) -> None:
        """Take partitions out of the lake; their objects are removed in time (``gpureport.lake.sweeping``)."""
        with self._staging() as (_, change):
            edits = []
            for each in partitions:
                names = self._index(day_key(each.cluster, each.date)).get(each.table, {})
                edits.append(Edit(each.table, each.cluster, each.date, (), frozenset(names)))
            self._publish(edits, change)

    def tidy(self) -> int:
        """Remove objects that have not been part of the lake for a day, and copies that nobody used for a week."""
        return sweep(self.stock)

    @contextmanager
    def _staging(self) -> Iterator[tuple[Path, str]]:
        """A folder to write into, and the name of the change: the generation in which it was begun, and who it is."""
        change = f"{self.root.generation:08d}-{token_hex(6)}"
        staging = self.path / f".staging-{change}"
        with store_errors(self.stock.address):
            staging.mkdir(parents=True)
        try:
            yield staging, change
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _publish(self, edits: Sequence[Edit], change: str) -> None:
        if not edits:
            return
        if not self.root.generation:
            self.roots[0] = msgspec.structs.replace(self.root, is_conditional=knows_conditions(self.stock.bucket))
        self.roots[0] = publish(self.stock, self.root, edits, change)
        for edit in edits:  # fetched before it was replaced
            shutil.rmtree(self.path / partition_folder(edit.table, edit.cluster, edit.date), ignore_errors=True)


def open_remote_lake(address: ObjectAddress, create: bool = False) -> RemoteLake:
    """The lake at an address; LakeError where there is none (unless to be created), or another version wrote it.

    StoreError where the storage does not serve.
    """
    stock = Stock(Bucket(address))
    found = stock.read_root()
    if found:
        check_version(str(address), found.root.schema_version)
    elif not create:
        raise LakeError(f"there is no lake at {address}; fill one with 'gpureport export' or 'gpureport import'")
    elif any(not each.name.startswith((f"{CHANGES}/", f"{TURNS}/")) for each in stock.bucket.objects()):
        raise LakeError(f"{address} holds objects but is not a gpureport lake (it has no {ROOT}); give a new or empty prefix")
    with store_errors(address):
        folder, lock = open_view(address.cache / "views")
    lake = RemoteLake(folder, stock, [found.root if found else Root(SCHEMA_VERSION)])
    weakref.finalize(lake, close_view, folder, lock, os.getpid())
    return lake
