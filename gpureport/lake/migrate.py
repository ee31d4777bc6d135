"""Migration of an older lake: its files stay in place, and a new root lists them.

Files without some columns are rewritten with them as unknown: null, or '' for a name. Facts are not recomputed. Older forms: a
folder with a marker and fixed file names (schemas 1 and 2), or a bucket prefix with an index for each day (schema 2).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.commit import new_change, with_files
from gpureport.lake.lake import exclusive_run, no_lake
from gpureport.lake.parquet import held_type, write_parquet
from gpureport.lake.root import MARKER, ROOT, Replaced, Root, Stored, check_version, day_of, encode_root, file_name, old_version
from gpureport.lake.views import footer
from gpureport.store import Bucket, Folder, Found, ObjectAddress, Place, Storage
from gpureport.store.folder import locked, sync
from gpureport.values.errors import LakeError, first_line
from gpureport.values.runtime.spill import private_folder
from gpureport.values.tables import SCHEMA_VERSION, TABLE_BY_NAME
from gpureport.values.tables.table import Column
from gpureport.values.window import to_ms

_PLACING = ".placing"
"""Folder in which an older version left a complete change before moving its files into place."""
_OBSERVED = "observed-"
_SNAPSHOTS = 1000
_OLD_FILE = re.compile(
    r"((?:facts/)?\w+)/cluster=([^/]+)/date=(\d{4}-\d\d-\d\d)/(?:part-\d{4,}|observed-\d{8}(?:T\d{9}Z)?)\.parquet"
)


_RENAMED = {
    "facts/container_ask": "facts/container_request",
    "facts/device_room": "facts/device_capacity",
    "facts/overgrant": "facts/overallocation",
    "facts/room_look": "facts/free_capacity",
    "facts/ungiven_use": "facts/unallocated_use",
}
"""Old names of tables by new name. Their columns are the same."""


@dataclass(frozen=True)
class Migrated:
    """Version before (None where the lake is of this version), and the number of rewritten files."""

    from_version: int | None
    file_count: int = 0


@dataclass(frozen=True)
class _Older:
    """A lake of an older version: its files by table and day, and the object that the new root replaces."""

    storage: Storage
    version: int
    files: dict[tuple[str, str], list[str]]
    root: Found | None = None
    is_conditional: bool = True
    uncommitted: tuple[str, ...] = ()


def migrate(place: Place, is_rehearsal: bool = False) -> Migrated:
    """Convert the lake to this version and return what was done. An interrupted migration can be run again.

    LakeError for no lake, a newer lake, or a file without a required column. The lake is then unchanged.
    """
    older = _older_bucket(place) if isinstance(place, ObjectAddress) else _older_folder(place, is_rehearsal)
    if older is None:
        return Migrated(None)
    found = {where: [_missing(older.storage, name, where[0]) for name in names] for where, names in older.files.items()}
    count = sum(bool(each) for missing in found.values() for each in missing)
    if not is_rehearsal:
        with exclusive_run(place), private_folder(older.storage.folder, ".staging-") as staging:
            root = _new_root(older, found, staging)
            if not older.storage.replace(ROOT, older.root, encode_root(root)):
                raise LakeError(f"another gpureport changed {place} at the same time; run migrate again")
            older.storage.delete([MARKER])
    return Migrated(older.version, count)


def _older_folder(path: Path, is_rehearsal: bool) -> _Older | None:
    storage = Folder(path)
    if storage.get(ROOT):
        return None
    version = old_version(path)
    if version is None:
        raise no_lake(path)
    if version > SCHEMA_VERSION:
        check_version(path, version)
    if not is_rehearsal:
        with storage.errors(), locked(path / ".lock"):
            _finish_placing(path)
    files: dict[tuple[str, str], list[str]] = {}
    for each in sorted(each.name for each in storage.objects()):
        match = _partition_of(each)
        if match:
            files.setdefault(match, []).append(each)
    return _Older(storage, version, files)


def _partition_of(name: str) -> tuple[str, str] | None:
    """Return the table and day of a lake file; None for any other file."""
    found = _OLD_FILE.fullmatch(name)
    return (_RENAMED.get(found[1], found[1]), f"{found[2]}/{found[3]}") if found else None


def _finish_placing(path: Path) -> None:
    """Move the waiting partitions into place. Only added snapshots keep the day's files; any other partition replaces them."""
    ready = path / _PLACING
    is_adding = not (ready / ".replaces").exists()
    for staged in sorted(ready.glob("**/cluster=*/date=*")):
        target = path / staged.relative_to(ready)
        if not (is_adding and all(file.name.startswith(_OBSERVED) for file in staged.iterdir())):
            shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True, exist_ok=True)
        for file in staged.iterdir():
            file.replace(target / file.name)
    shutil.rmtree(ready, ignore_errors=True)


def _older_bucket(address: ObjectAddress) -> _Older | None:
    bucket = Bucket(address)
    found = bucket.get(ROOT)
    if found is None:
        raise no_lake(address)
    root = _json(bucket, ROOT, gzip.decompress)
    version = int(root["schema_version"])
    if version >= SCHEMA_VERSION:
        check_version(address, version)
        return None
    files: dict[tuple[str, str], list[str]] = {}
    for key, day in root["days"].items():
        cluster, date_of_day = day_of(key)
        for table, held in _json(bucket, day["index"]).items():
            folder = f"{table}/cluster={cluster}/date={date_of_day}"
            files[_RENAMED.get(table, table), key] = [
                f"changes/{change}/{folder}/{name}" for name, (change, *_) in sorted(held.items())
            ]
    known = {name for names in files.values() for name in names}
    uncommitted = tuple(each.name for each in bucket.objects("changes") if each.name not in known)
    return _Older(bucket, version, files, found, bool(root["is_conditional"]), uncommitted)


def _json(bucket: Bucket, name: str, unpacked: Any = bytes) -> Any:
    try:
        found = bucket.get(name)
        return json.loads(unpacked(found.data if found else b""))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise LakeError(f"{bucket.place}/{name} is damaged ({first_line(error)}); restore it from a backup") from error


def _missing(storage: Storage, name: str, table: str) -> list[Column]:
    """Return the columns that a file lacks. All files are checked before any is rewritten."""
    file = storage.fetch(name)
    names = set(footer(file).schema.to_arrow_schema().names)
    known = TABLE_BY_NAME.get(table)
    missing = [column for column in known.columns if column.name not in names] if known else []
    if needed := [column.name for column in missing if not (column.nullable or column.type == pa.string())]:
        raise LakeError(f"{file} lacks {', '.join(needed)}, which cannot be unknown; export or import that day into a new lake")
    return missing


def _new_root(older: _Older, found: dict[tuple[str, str], list[list[Column]]], staging: Path) -> Root:
    change, gone = new_change(), list(older.uncommitted)
    files: dict[tuple[str, str], tuple[Stored, ...]] = {}
    for number, ((table, key), names) in enumerate(older.files.items()):
        kept: list[Stored] = []
        for name, missing in zip(names, found[table, key], strict=True):
            if missing:
                draft = _completed(older.storage.fetch(name), missing, staging / f"{number}-{len(kept)}")
                kept.append(_stored(file_name(table, *day_of(key), change, _number(name, len(kept))), draft, _times(name)))
                older.storage.add({kept[-1].name: draft})
                gone.append(name)
            else:
                kept.append(_stored(name, older.storage.fetch(name), _times(name)))
        files[table, key] = tuple(kept)
    notes = {key: _note(older.storage, names[0]) for (table, key), names in older.files.items() if table == "facts/ledger_hour"}
    replaced = (Replaced(tuple(gone)),) if gone else ()
    root = Root(is_conditional=older.is_conditional, changes=(change,), notes=notes, replaced=replaced)
    return with_files(root, files)


def _number(name: str, count: int) -> int:
    """Return the file's number: a part keeps its own, and snapshots get numbers above those of parts."""
    part = Path(name).stem
    return _SNAPSHOTS + count if part.startswith(_OBSERVED) else int(part.removeprefix("part-"))


def _times(name: str) -> tuple[int, ...]:
    """Return the first and last snapshot time by the file's name: one snapshot or a whole day; empty for a part."""
    text = Path(name).stem.removeprefix(_OBSERVED)
    if text.startswith("part-"):
        return ()
    if "T" in text:
        at = to_ms(datetime.strptime(text, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC))
        return at, at
    start = datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC)
    return to_ms(start), to_ms(start + timedelta(days=1)) - 1


def _stored(name: str, path: Path, times: tuple[int, ...]) -> Stored:
    """Return the root entry of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Stored(name, path.stat().st_size, pq.read_metadata(path).num_rows, digest, *times)


def _completed(file: Path, missing: Iterable[Column], draft: Path) -> Path:
    """Write the rows with the missing columns as unknown."""
    rows = pq.ParquetFile(file).read()
    for column in missing:
        unknown = pa.nulls(rows.num_rows, held_type(column))
        rows = rows.append_column(column.name, unknown if column.nullable else unknown.fill_null(""))
    write_parquet(rows, draft, {})
    sync(draft)
    return draft


def _note(storage: Storage, name: str) -> dict[str, str]:
    """Return the notes that an older version wrote into the footers of facts."""
    metadata = pq.read_metadata(storage.fetch(name)).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items() if key != b"ARROW:schema"}
