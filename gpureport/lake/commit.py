"""Commit of a change: one new root object makes the whole change visible to readers, or nothing of it.

A change is an edit of the latest root, so writers of different days do not conflict, and snapshots never do. A file without an
entry in any root is deleted a day later, by the storage's clock. A reader keeps the root that it opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from secrets import token_hex

import msgspec
import pyarrow as pa

from gpureport.lake.parquet import dated, write_parquet
from gpureport.lake.root import (
    FACTS,
    ROOT,
    Days,
    Replaced,
    Root,
    Stored,
    day_key,
    day_of,
    encode_root,
    file_name,
    is_own,
    partition_folder,
    read_root,
)
from gpureport.store import Bucket, Storage
from gpureport.store.folder import sync
from gpureport.store.storage import no_conditions
from gpureport.values.errors import LakeError
from gpureport.values.tables import SOURCE, STATE_TABLES, TABLE_BY_NAME
from gpureport.values.window import to_ms

_ABANDONED = "abandoned"
BASIS = "samples_hash"
"""Entry of a day's notes that identifies the samples behind its facts; empty where these are outdated."""
_NOTES = "notes"
_OBSERVED = tuple(table.name for table in (*STATE_TABLES, SOURCE))
_SCHEMA = "schema"
"""Arrow schema of a table without rows: there is no Parquet file for it."""


@dataclass(frozen=True)
class Change:
    """Staged files of one change. Picklable: several worker processes may stage parts of the same change."""

    staging: Path

    def write(
        self, table: str, cluster: str, day: date, rows: pa.Table, part: int = 0, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Stage one part of a table's day. The commit replaces all parts of that day and keeps its snapshots.

        A part without rows has no file. Staging a part again replaces it, for example after its units were read wrongly.
        """
        folder, label = self._folder(table, cluster, day), f"{part:04d}"
        for first in folder.glob(f"{label}.*.parquet"):
            if first.name.removesuffix(".parquet").rsplit(".", 2)[0] == label:
                first.unlink()
        if rows.num_rows:
            self._write(folder, table, dated(rows, day) if table.startswith(FACTS) else rows, label, metadata or {})
        else:
            (folder / _SCHEMA).write_bytes(rows.schema.remove_metadata().serialize())

    def observe(self, cluster: str, observed_at: datetime, tables: Mapping[str, pa.Table]) -> None:
        """Stage the tables of a snapshot. It replaces a snapshot of the same time."""
        day, at_ms = observed_at.astimezone(UTC).date(), to_ms(observed_at)
        for table, rows in tables.items():
            if rows.num_rows:
                self._write(self._folder(table, cluster, day), table, rows, f"0000.{at_ms}.{at_ms}", {})

    def note(self, cluster: str, day: date, entries: Mapping[str, str]) -> None:
        """Stage notes on the origin of the day's facts. Earlier entries with other names stay."""
        (self._folder(_NOTES, cluster, day) / _NOTES).write_text(json.dumps(dict(entries)), encoding="utf-8")

    def abandon(self) -> None:
        """Discard the change: the lake stays as it is when the block ends."""
        (self.staging / _ABANDONED).touch()

    def _folder(self, table: str, cluster: str, day: date) -> Path:
        folder = self.staging / partition_folder(table, cluster, day)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _write(self, folder: Path, table: str, rows: pa.Table, label: str, metadata: Mapping[str, str]) -> None:
        draft = folder / f".{label}"
        write_parquet(rows, draft, metadata, TABLE_BY_NAME.get(table))
        keep(draft, label, rows.num_rows)


def keep(draft: Path, label: str, row_count: int) -> Path:
    """Sync a written file to disk and rename it by its part, row count and digest. Return the new path."""
    sync(draft)
    with draft.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return draft.rename(draft.with_name(f"{label}.{row_count}.{digest}.parquet"))


@dataclass(frozen=True)
class Staged:
    """Staged files of one table and day: their entries in the root, with their local paths."""

    table: str
    key: str
    files: Mapping[Stored, Path]
    schema: bytes = b""
    notes: Mapping[str, str] | None = None
    rewritten: frozenset[Stored] = frozenset()
    """Snapshot files of the lake that these files replace with the same rows, or with some of them."""

    @property
    def is_replacing(self) -> bool:
        """Whether the files replace the day's parts."""
        return bool(self.schema) or any(not each.is_observed for each in self.files)

    @property
    def times(self) -> set[int]:
        """Times of the staged single snapshots, in milliseconds."""
        return set() if self.rewritten else {each.first_ms for each in self.files if each.first_ms is not None}


def staged_files(staging: Path, change: str) -> list[Staged]:
    """Return the staged files of a change; none where the change was abandoned."""
    if (staging / _ABANDONED).exists():
        return []
    return [_staged(staging, folder, change) for folder in sorted(staging.glob("**/cluster=*/date=*"))]


def _staged(staging: Path, folder: Path, change: str) -> Staged:
    table = folder.parent.parent.relative_to(staging).as_posix()
    key = day_key(folder.parent.name.removeprefix("cluster="), date.fromisoformat(folder.name.removeprefix("date=")))
    if table == _NOTES:
        return Staged(table, key, {}, notes=json.loads((folder / _NOTES).read_text(encoding="utf-8")))
    files = {stored(table, key, path, change): path for path in sorted(folder.glob("*.parquet"))}
    schema = folder / _SCHEMA
    return Staged(table, key, files, schema.read_bytes() if schema.exists() else b"")


def stored(table: str, key: str, staged: Path, change: str) -> Stored:
    """Return the root entry of a staged file."""
    number, *times, rows, digest = staged.name.removesuffix(".parquet").split(".")
    name = file_name(table, *day_of(key), change, int(number))
    return Stored(name, staged.stat().st_size, int(rows), digest, *map(int, times))


def edit_of(staged: Sequence[Staged], base: Root) -> Edit:
    """Return the root edit for staged files. It raises LakeBusyError where another writer changed those days since ``base``."""
    replaced_days = {each.key for each in staged if each.is_replacing}
    times = {(each.key, time) for each in staged for time in each.times}

    def edit(latest: Root) -> Root:
        for key in replaced_days:
            if _parts(latest, key) != _parts(base, key):
                raise _busy_error(key)
        tables = {(table, key) for key, _ in times for table in _OBSERVED} | {(each.table, each.key) for each in staged}
        changed = {where: latest.files.get(where[0], {}).get(where[1], ()) for where in tables}
        changed = {(table, key): _without(files, key, times) for (table, key), files in changed.items()}
        for each in staged:
            old = changed[each.table, each.key]
            if not each.rewritten <= set(old):
                raise _busy_error(each.key)
            kept = (one for one in old if one not in each.rewritten and (one.is_observed or not each.is_replacing))
            changed[each.table, each.key] = (*kept, *each.files)
        notes = {each.key: {**latest.notes.get(each.key, {}), **each.notes} for each in staged if each.notes is not None}
        others = {key: note for key, note in latest.notes.items() if key not in notes and note != base.notes.get(key)}
        # Facts follow from those of earlier days. Of two days that were computed at the same time, the later one is outdated.
        for pair in [(own, other) for own in notes for other in others if day_of(own)[0] == day_of(other)[0]]:
            later = max(pair, key=day_of)
            notes[later] = {**{**others, **notes}[later], BASIS: ""}
        schemas = {each.table: each.schema for each in staged if each.schema and each.table not in TABLE_BY_NAME}
        edited = with_files(latest, changed)
        return msgspec.structs.replace(edited, notes={**latest.notes, **notes}, schemas={**latest.schemas, **schemas})

    return edit


def _parts(root: Root, key: str) -> list[tuple[str, Stored]]:
    return [(table, each) for table, days in root.files.items() for each in days.get(key, ()) if not each.is_observed]


def _without(files: Sequence[Stored], key: str, times: Collection[tuple[str, int]]) -> tuple[Stored, ...]:
    """Return the files without the single snapshots of these times, which the change replaces."""
    return tuple(each for each in files if each.first_ms != each.last_ms or (key, each.first_ms) not in times)


def _busy_error(key: str) -> LakeBusyError:
    cluster, day = day_of(key)
    return LakeBusyError(
        f"another gpureport changed {day} of {cluster} at the same time; nothing of this change is in the lake, run again"
    )


_TRIES = 100
_CHANGES_MAX = 100
GRACE = timedelta(days=1)
_UNUSED_SECONDS = 7 * 86_400.0

Edit = Callable[[Root], Root]
"""A function from the latest root to the next. LakeBusyError where the latest root conflicts with the change."""


class LakeBusyError(LakeError):
    """Another gpureport process has the lock, or committed a conflicting change first."""


def new_change() -> str:
    """Return a unique name for a change."""
    return token_hex(8)


def create_root(storage: Storage) -> None:
    """Write an empty root where there is none."""
    if not read_root(storage):
        storage.replace(ROOT, None, encode_root(Root()))


def commit(storage: Storage, change: str, edit: Edit) -> Root:
    """Replace the root and return the new one. LakeBusyError where another writer was first; the lake is then unchanged."""
    for _ in range(_TRIES):
        if (held := read_root(storage)) is None:
            raise LakeError(f"{storage.place}/{ROOT} is gone; restore it from a backup, or use another lake")
        latest, found = held
        if change in latest.changes:
            return latest  # an earlier attempt succeeded, but its response was lost
        edited = edit(latest)
        if edited == latest:
            return latest
        if not latest.is_conditional:
            raise no_conditions(storage.place)
        root = _stamped(latest, edited, change, to_ms(found.modified_at))
        if storage.replace(ROOT, found, encode_root(root)):
            return root
    raise LakeBusyError(f"others change {storage.place} without a pause; run again later")


def _stamped(latest: Root, edited: Root, change: str, written_ms: int) -> Root:
    """Return the edited root with its change and removed files. Files that the previous change removed get their time."""
    gone = tuple(sorted(latest.names() - edited.names()))
    timed = tuple(each if each.at_ms is not None else Replaced(each.names, written_ms) for each in edited.replaced)
    replaced = (*timed, Replaced(gone)) if gone else timed
    return msgspec.structs.replace(edited, changes=(*latest.changes, change)[-_CHANGES_MAX:], replaced=replaced)


def with_files(root: Root, changed: Mapping[tuple[str, str], tuple[Stored, ...]]) -> Root:
    """Return the root with these files by table and day. An empty tuple removes the table's day."""
    tables: dict[str, Days] = dict(root.files)
    for (table, key), files in changed.items():
        days = {**tables.get(table, {}), key: tuple(sorted(files, key=lambda each: (each.first_ms or 0, each.number)))}
        tables[table] = {name: found for name, found in sorted(days.items()) if found}
    return msgspec.structs.replace(root, files={table: days for table, days in sorted(tables.items()) if days})


def delete_unused(storage: Storage, grace: timedelta) -> int:
    """Delete unused files older than the grace period: files that a change removed, and files that no change committed.

    Return the number of deleted files. Unused local copies are deleted after a week.
    """
    found = read_root(storage)
    if found is None:
        return 0
    root, before = found.root, found.found.modified_at - grace
    due = [each for each in root.replaced if each.at_ms is not None and each.at_ms < to_ms(before)]
    replaced = {name for each in root.replaced for name in each.names}
    added = [each.name for each in storage.objects() if is_own(each.name) and each.modified_at < before]
    latest = read_root(storage)  # another writer may have committed new files since
    known = replaced | root.names() | (latest.root.names() if latest else set())
    gone = [name for each in due for name in each.names] + [name for name in added if name not in known]
    storage.delete(gone)
    if removed := {each.names for each in due}:

        def edit(now: Root) -> Root:
            return msgspec.structs.replace(now, replaced=tuple(each for each in now.replaced if each.names not in removed))

        commit(storage, new_change(), edit)
    if isinstance(storage, Bucket):
        storage.delete_unused_copies(_UNUSED_SECONDS)
    return len(gone)
