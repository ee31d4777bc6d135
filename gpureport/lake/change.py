"""Staged files of a writer, aside and durable; all become part of the lake when the change ends, or none.

Parts replace what a table's day held. Snapshots are added beside it, and stay when the rest is replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pyarrow as pa

from gpureport.lake.commit import Edit, LakeBusyError, with_files
from gpureport.lake.parquet import dated, write_parquet
from gpureport.lake.paths import FACTS, day_key, day_of, file_name, partition_folder
from gpureport.lake.root import Root, Stored
from gpureport.store.folder import sync
from gpureport.values.tables import SOURCE, TABLE_BY_NAME
from gpureport.values.tables.state import STATE_TABLES
from gpureport.values.window import to_ms

_ABANDONED = "abandoned"
_NOTES = "notes"
_OBSERVED = tuple(table.name for table in (*STATE_TABLES, SOURCE))
_SCHEMA = "schema"
"""Of a table without rows, for which there is no file."""


@dataclass(frozen=True)
class Change:
    """Files written aside. Picklable: worker processes may write parts into the same change."""

    staging: Path

    def write(
        self, table: str, cluster: str, day: date, rows: pa.Table, part: int = 0, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Stage one part of a table's day, which will hold the staged parts, its snapshots and nothing else.

        No rows are no file. A part that is staged again takes the place of the first: units were read wrongly there.
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
        """Stage the tables of a snapshot; one of the same time is replaced by it."""
        day, at_ms = observed_at.astimezone(UTC).date(), to_ms(observed_at)
        for table, rows in tables.items():
            if rows.num_rows:
                self._write(self._folder(table, cluster, day), table, rows, f"0000.{at_ms}.{at_ms}", {})

    def note(self, cluster: str, day: date, entries: Mapping[str, str]) -> None:
        """Say of the day's facts what they are made from and with."""
        (self._folder(_NOTES, cluster, day) / _NOTES).write_text(json.dumps(dict(entries)), encoding="utf-8")

    def abandon(self) -> None:
        """Leave the lake as it is when the block ends."""
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
    """Make a written file a staged one: durable, and named by what the root will say of it."""
    sync(draft)
    with draft.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return draft.rename(draft.with_name(f"{label}.{row_count}.{digest}.parquet"))


@dataclass(frozen=True)
class Staged:
    """Staged files of a table's day, as the root names them, and their places."""

    table: str
    key: str
    files: Mapping[Stored, Path]
    schema: bytes = b""
    notes: Mapping[str, str] | None = None
    rewritten: frozenset[Stored] = frozenset()
    """Snapshots of the lake in whose place these files hold the same rows, or some of them."""

    @property
    def is_replacing(self) -> bool:
        """Whether the files come in place of the day's parts."""
        return bool(self.schema) or any(not each.is_observed for each in self.files)

    @property
    def times(self) -> set[int]:
        """Of its snapshots, one by one."""
        return set() if self.rewritten else {each.first_ms for each in self.files if each.first_ms is not None}


def staged_files(staging: Path, change: str) -> list[Staged]:
    """Staged files of a change; none of one that was abandoned."""
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
    """A staged file as the root will name it."""
    number, *times, rows, digest = staged.name.removesuffix(".parquet").split(".")
    name = file_name(table, *day_of(key), change, int(number))
    return Stored(name, staged.stat().st_size, int(rows), digest, *map(int, times))


def edit_of(staged: Sequence[Staged], base: Root) -> Edit:
    """The edit that staged files mean; LakeBusyError where somebody else replaced what they replace, since ``base``."""
    replaced_days = {each.key for each in staged if each.is_replacing}
    times = {(each.key, time) for each in staged for time in each.times}

    def edit(latest: Root) -> Root:
        for key in replaced_days:
            if _parts(latest, key) != _parts(base, key):
                raise _busy(key)
        tables = {(table, key) for key, _ in times for table in _OBSERVED} | {(each.table, each.key) for each in staged}
        changed = {where: latest.files.get(where[0], {}).get(where[1], ()) for where in tables}
        changed = {(table, key): _without(files, key, times) for (table, key), files in changed.items()}
        for each in staged:
            old = changed[each.table, each.key]
            if not each.rewritten <= set(old):
                raise _busy(each.key)
            kept = (one for one in old if one not in each.rewritten and (one.is_observed or not each.is_replacing))
            changed[each.table, each.key] = (*kept, *each.files)
        notes = {each.key: dict(each.notes) for each in staged if each.notes is not None}
        schemas = {each.table: each.schema for each in staged if each.schema and each.table not in TABLE_BY_NAME}
        edited = with_files(latest, changed)
        return msgspec.structs.replace(edited, notes={**latest.notes, **notes}, schemas={**latest.schemas, **schemas})

    return edit


def _parts(root: Root, key: str) -> list[tuple[str, Stored]]:
    return [(table, each) for table, days in root.files.items() for each in days.get(key, ()) if not each.is_observed]


def _without(files: Sequence[Stored], key: str, times: Collection[tuple[str, int]]) -> tuple[Stored, ...]:
    """The files but for single snapshots of these times, which come anew."""
    return tuple(each for each in files if each.first_ms != each.last_ms or (key, each.first_ms) not in times)


def _busy(key: str) -> LakeBusyError:
    cluster, day = day_of(key)
    return LakeBusyError(
        f"another gpureport changed {day} of {cluster} meanwhile; nothing of this change is in the lake, run again"
    )
