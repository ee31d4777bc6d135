"""A lake as its root describes it. A reader keeps the root that it opened, whatever other processes change.

Snapshots of past days are packed into one file per table and day, facts into one per table and month. The root names a packed
file under each of its valid days. Rows of replaced or removed days are skipped until the month is packed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import chain, product
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.check import DamagedError, checked
from gpureport.lake.commit import (
    GRACE,
    Change,
    LakeBusyError,
    Staged,
    commit,
    create_root,
    delete_unused,
    edit_of,
    keep,
    new_change,
    staged_files,
    stored,
    with_files,
)
from gpureport.lake.parquet import ROW_GROUP_ROWS, dated
from gpureport.lake.root import (
    FACTS,
    ROOT,
    Root,
    Stored,
    check_version,
    day_key,
    day_of,
    old_version,
    packed_name,
    partition_folder,
    read_root,
)
from gpureport.store import Bucket, Folder, ObjectAddress, Place, Storage
from gpureport.store.folder import locked
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.runtime.spill import private_folder
from gpureport.values.tables import SOURCE, STATE_TABLES
from gpureport.values.tables.table import Table

Files = Mapping[Stored, Path]
_LOOSE_DAYS = 7
"""A month is packed before its end once this many of its days are not packed."""
_LARGEST_BYTES = 256 << 20
"""Files of a month with more bytes than this in total are not packed."""


def due_months(root: Root, before: date, is_partial_only: bool) -> list[tuple[str, dict[str, tuple[Stored, ...]]]]:
    """Return the months of facts to pack, with their days before this date; months with the most days first.

    Months with a packed file that has invalid days come first, or alone where ``is_partial_only``.
    """
    months: dict[tuple[str, str, date], dict[str, tuple[Stored, ...]]] = {}
    counts = Counter(each.name for table, _, each in root.each() if table.startswith(FACTS))
    partial = set[str]()
    for table, days in root.files.items():
        for key, files in sorted(days.items()) if table.startswith(FACTS) else ():
            cluster, day = day_of(key)
            partial |= {each.name for each in files if each.is_packed and each.number != counts[each.name]}
            if day < before and (files[0].is_packed or not is_partial_only):
                months.setdefault((table, cluster, day.replace(day=1)), {})[key] = files
    first = [(table, days) for (table, _, _), days in months.items() if not partial.isdisjoint(_names(days))]
    if is_partial_only:
        return first
    due = [(where[0], days) for where, days in months.items() if _is_due(days, (before - where[2]).days >= 31)]
    return first + sorted((each for each in due if each not in first), key=lambda each: -len(each[1]))


def _names(days: Mapping[str, tuple[Stored, ...]]) -> dict[str, int]:
    """Return the files with their sizes in bytes."""
    return {each.name: each.byte_count for files in days.values() for each in files}


def _is_due(days: Mapping[str, tuple[Stored, ...]], is_over: bool) -> bool:
    files, loose = _names(days), sum(not held[0].is_packed for held in days.values())
    return sum(files.values()) <= _LARGEST_BYTES and (loose >= _LOOSE_DAYS or (is_over and len(files) > 1))


def packed(table: str, days: Mapping[str, Files], staging: Path) -> tuple[dict[str, Stored], Path]:
    """Pack days of a cluster into one file. Return the root entry for each day, and the local path."""
    schemas = [pq.read_schema(path).remove_metadata() for files in days.values() for path in files.values()]
    schema = pa.unify_schemas([pa.schema([pa.field("date", pa.date32())]), *schemas], promote_options="permissive")
    change = new_change()
    rows = (_of_day(each, path, day_of(key)[1]) for key, files in days.items() for each, path in files.items())
    same = (pa.concat_tables([schema.empty_table(), each], promote_options="permissive") for each in rows)
    _write_all(staging / f".{change}", schema, same)
    file = keep(staging / f".{change}", change, 0)
    name = packed_name(table, day_of(next(iter(days)))[0], change, len(days))
    digest = file.name.split(".")[-2]
    counts = {key: sum(each.row_count for each in files) for key, files in days.items()}
    return {key: Stored(name, file.stat().st_size, count, digest) for key, count in counts.items()}, file


def _of_day(stored: Stored, path: Path, day: date) -> pa.Table:
    if stored.is_packed:
        return pq.read_table(path, filters=[("date", "=", day)], partitioning=None)
    return dated(pq.ParquetFile(path).read(), day)


def joined(table: Table, key: str, files: Files, staging: Path, change: str, left_out_ms: int | None = None) -> Staged:
    """Join the snapshots of a table's day into one file, without the snapshot of the time ``left_out_ms``."""
    rows = (batch for path in files.values() for batch in _batches(table, path))
    if left_out_ms is not None:
        import pyarrow.compute as pc  # only writers need pyarrow.compute

        column, instant = "start_at" if table is SOURCE else "observed_at", pa.scalar(left_out_ms, pa.timestamp("ms"))
        rows = (batch.filter(pc.not_equal(batch[column], instant)) for batch in rows)
    first, last = min(each.first_ms or 0 for each in files), max(each.last_ms or 0 for each in files)
    folder, number = staging / partition_folder(table.name, *day_of(key)), f"{int(left_out_ms is not None):04d}"
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number}"
    count = _write_all(draft, table.schema, rows)
    made = keep(draft, f"{number}.{first}.{last}", count)
    return Staged(table.name, key, {stored(table.name, key, made, change): made} if count else {}, rewritten=frozenset(files))


def _batches(table: Table, path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            yield pa.Table.from_batches([batch]).select(table.schema.names).cast(table.schema)


def _write_all(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Write row groups of the usual size, whatever the size of the parts, one in memory at a time. Return the number of rows."""
    waiting: list[pa.Table] = []
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, write_page_checksum=True) as writer:
        for rows in tables:
            count += rows.num_rows
            waiting.append(rows)
            if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    return count


_OBSERVED = (*STATE_TABLES, SOURCE)
_STAGING = ".staging-"
_RUN_LOCK = ".run.lock"


@dataclass(frozen=True)
class Partition:
    """One day of one cluster in one table."""

    table: str
    cluster: str
    date: date
    stored: tuple[Stored, ...]
    lake: Lake = field(repr=False, compare=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """The intact local files. DamagedError where one is damaged or missing."""
        self.lake.fetch([self])
        return tuple(self.lake.path / each.name for each in self.stored)

    @property
    def row_count(self) -> int:
        """Rows in all files of the partition."""
        return sum(each.row_count for each in self.stored)


@dataclass
class Lake:
    """A lake as it was opened, with the changes committed through this object."""

    storage: Storage
    root: Root
    _checked: set[str] = field(default_factory=set, repr=False)
    """Names of the files that this process has verified. Files are immutable, so one check is enough."""

    def __str__(self) -> str:
        return str(self.storage.place)

    @property
    def path(self) -> Path:
        """The folder with the lake's files, or with local copies of them."""
        return self.storage.folder

    def of_cluster(self, cluster: str) -> Lake:
        """Return a read-only view of the lake with this cluster alone. UsageError where the lake does not have it."""
        held = {day_of(key)[0] for days in self.root.files.values() for key in days}
        if cluster not in held:
            raise UsageError(f"the lake at {self} has no cluster {cluster!r}; it has {', '.join(sorted(held)) or 'none'}")
        files = {
            table: {key: found for key, found in days.items() if day_of(key)[0] == cluster}
            for table, days in self.root.files.items()
        }
        notes = {key: note for key, note in self.root.notes.items() if day_of(key)[0] == cluster}
        return Lake(self.storage, msgspec.structs.replace(self.root, files=files, notes=notes))

    def tables(self) -> list[str]:
        """Names of the lake's tables. Facts are named ``facts/<table>``."""
        return sorted(self.root.files)

    def partitions(self, table: str) -> list[Partition]:
        """Partitions of a table by cluster and day."""
        return [Partition(table, *day_of(key), files, self) for key, files in self.root.files.get(table, {}).items()]

    def partition(self, table: str, cluster: str, day: date) -> Partition | None:
        """The partition of a cluster and day; None where the table has none."""
        files = self.root.files.get(table, {}).get(day_key(cluster, day))
        return Partition(table, cluster, day, files, self) if files else None

    def computed_days(self) -> list[Partition]:
        """Days with facts by cluster and day, as partitions without files."""
        return [Partition("facts", *day_of(key), (), self) for key in sorted(self.root.notes)]

    def note(self, cluster: str, day: date) -> Mapping[str, str]:
        """Notes on the origin of a day's facts: samples, versions and settings."""
        return self.root.notes.get(day_key(cluster, day), {})

    def fetch(self, partitions: Iterable[Partition]) -> None:
        """Fetch and verify the files of partitions, several at a time. DamagedError where a file is damaged or missing."""
        wanted = {one.name: (each, one) for each in partitions for one in each.stored if one.name not in self._checked}
        self.storage.each(lambda pair: self._check(*pair), wanted.values())

    def _check(self, partition: Partition, stored: Stored) -> None:
        checked(self.storage, partition.table, day_key(partition.cluster, partition.date), stored)
        self._checked.add(stored.name)

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Stage files and commit them together at the end of the block. An exception leaves the lake unchanged.

        LakeBusyError where another writer changed the same days first.
        """
        with self._staging() as staging:
            yield Change(staging)
            change = new_change()
            staged = staged_files(staging, change)
            self._commit(change, [*self._joined_without(staged, staging, change), *staged])

    def pack_observations(self, before: date, fewest: int = 2) -> int:
        """Join the snapshots of each table and earlier day with at least ``fewest`` files. Return the number of files joined."""
        with self._staging() as staging:
            change = new_change()
            staged = [
                joined(table, key, self._local_paths(table.name, key, files), staging, change)
                for table in _OBSERVED
                for key, files in self._observed(table.name).items()
                if day_of(key)[1] < before and len(files) >= fewest
            ]
            self._commit(change, staged)
        return sum(len(each.rewritten) for each in staged)

    def pack_facts(self, before: date, at_most: int | None = None, is_partial_only: bool = False) -> int:
        """Pack the facts of earlier days into one file per table and month. Return the number of new files.

        Months with damaged files stay as they are, and so do days that another writer changes.
        """
        changed: dict[tuple[str, str], tuple[tuple[Stored, ...], Stored]] = {}
        with self._staging() as staging:
            for table, days in due_months(self.root, before, is_partial_only)[:at_most]:
                with suppress(DamagedError):
                    held = {key: self._local_paths(table, key, files) for key, files in days.items()}
                    made, file = packed(table, held, staging)
                    self.storage.add({next(iter(made.values())).name: file})
                    changed |= {(table, key): (days[key], stored) for key, stored in made.items()}

            def edit(latest: Root) -> Root:
                same = {w: (new,) for w, (old, new) in changed.items() if latest.files.get(w[0], {}).get(w[1]) == old}
                return with_files(latest, same)

            if changed:
                self.root = commit(self.storage, new_change(), edit)
        return len({stored.name for _, stored in changed.values()})

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Remove partitions from the root. Their files are deleted a day later, when no reader needs them."""
        removed = {(each.table, day_key(each.cluster, each.date)): set(each.stored) for each in partitions}

        def edit(latest: Root) -> Root:
            left = {
                (table, key): tuple(each for each in latest.files.get(table, {}).get(key, ()) if each not in gone)
                for (table, key), gone in removed.items()
            }
            edited = with_files(latest, left)
            kept = {key for table, days in edited.files.items() if table.startswith("facts/") for key in days}
            gone = {key for _, key in removed} - kept
            return msgspec.structs.replace(edited, notes={key: note for key, note in edited.notes.items() if key not in gone})

        self.root = commit(self.storage, new_change(), edit)

    def delete_unused_files(self, grace: timedelta = GRACE) -> int:
        """Delete files that have not been in the root for the grace period. Return the number of deleted files."""
        return delete_unused(self.storage, grace)

    def _observed(self, table: str) -> dict[str, list[Stored]]:
        """A table's snapshot files by day."""
        days = self.root.files.get(table, {})
        return {key: found for key, files in days.items() if (found := [each for each in files if each.is_observed])}

    def _joined_without(self, staged: Sequence[Staged], staging: Path, change: str) -> Iterator[Staged]:
        """Yield joined snapshot files without the snapshots that are staged again."""
        times = {(each.key, time) for each in staged for time in each.times}
        for (key, time), table in product(sorted(times), _OBSERVED):
            for each in self._observed(table.name).get(key, ()):
                if each.first_ms != each.last_ms and (each.first_ms or 0) <= time <= (each.last_ms or 0):
                    yield joined(table, key, self._local_paths(table.name, key, [each]), staging, change, time)

    def _local_paths(self, table: str, key: str, files: Sequence[Stored]) -> dict[Stored, Path]:
        partition = Partition(table, *day_of(key), tuple(files), self)
        return dict(zip(files, partition.files, strict=True))

    @contextmanager
    def _staging(self) -> Iterator[Path]:
        with self.storage.errors():
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.root.changes:
                create_root(self.storage)
            with private_folder(self.path, _STAGING) as staging:
                yield staging

    def _commit(self, change: str, staged: list[Staged]) -> None:
        if not staged:
            return
        edit = edit_of(staged, self.root)
        if latest := read_root(self.storage):
            edit(latest.root)  # fail before uploading where another writer was first
        files = chain.from_iterable(each.files.items() for each in staged)
        self.storage.add({stored.name: path for stored, path in files})
        self.root = commit(self.storage, change, edit)


def open_lake(place: Place, create: bool = False) -> Lake:
    """Open the lake at a place. LakeError where there is none (unless ``create``) or another version wrote it."""
    storage: Storage = Bucket(place) if isinstance(place, ObjectAddress) else Folder(place)
    if isinstance(place, Path) and place.exists() and not place.is_dir():
        raise LakeError(f"{place} is a file, not a lake; give a folder with --lake")
    if found := read_root(storage):
        return Lake(storage, found.root)
    if (version := old_version(place)) is not None:
        check_version(place, version, is_rooted=False)
    if not create:
        raise no_lake(place)
    if any(not each.name.startswith(".") for each in storage.objects()):
        raise LakeError(f"{place} has files but is not a gpureport lake (it has no {ROOT}); give a new or empty place")
    return Lake(storage, Root())


def no_lake(place: Place) -> LakeError:
    """Return the LakeError for a place without a lake. A folder with only a run's lock file counts as empty."""
    if isinstance(place, Path) and place.exists() and [each.name for each in place.glob("*")] != [_RUN_LOCK]:
        return LakeError(f"{place} is not a gpureport lake (it has no {ROOT}); give the lake's folder with --lake")
    return LakeError(f"there is no lake at {place}; fill one with 'gpureport export' or 'gpureport import'")


@contextmanager
def exclusive_run(place: Place) -> Iterator[None]:
    """Hold the lock for the only nightly run over a lake. LakeBusyError where another run holds it.

    For object storage the lock is local to this machine. A run elsewhere fails at its commit where it changes the same days.
    """
    storage: Storage = Bucket(place) if isinstance(place, ObjectAddress) else Folder(place)
    try:
        with storage.errors(), locked(storage.folder / _RUN_LOCK, is_waiting=False):
            yield
    except BlockingIOError:
        raise LakeBusyError(f"another run over the lake at {place} is active; run again when it has ended") from None
