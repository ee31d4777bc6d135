"""A lake of an older schema made one of this: files that lack columns get them, as unknown: null, or '' of a name.

Schema 1 is every lake written before there was a second; it may lack any column that was added since, up to whole tables,
which then simply have no files. Nothing is computed anew: facts of another version are refused by what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.errors import LakeError
from gpureport.lake.change import changing_in_place, write_marker
from gpureport.lake.layout import Lake, Partition, open_lake, schema_version
from gpureport.lake.parquet import held_type, write_parquet
from gpureport.lake.placing import disk_errors
from gpureport.store import ObjectAddress, Place
from gpureport.tables import SCHEMA_VERSION, TABLES
from gpureport.tables.table import Column, Table


@dataclass(frozen=True)
class Migrated:
    """From which version to which, how many files were written anew, and of which days."""

    from_version: int
    to_version: int
    file_count: int
    days: tuple[date, ...]


def migrate(place: Place, is_rehearsal: bool = False) -> Migrated:
    """Bring the lake to this version's schema; what was done. A run that is killed is simply run again.

    LakeError for no lake, for a newer one, and for a file that lacks what must be known; the lake is then as it was.
    """
    if isinstance(place, ObjectAddress):
        open_lake(place)  # there was object storage only from this schema on: nothing older can lie there
        return Migrated(SCHEMA_VERSION, SCHEMA_VERSION, 0, ())
    return _migrate_folder(place, is_rehearsal)


def _migrate_folder(path: Path, is_rehearsal: bool) -> Migrated:
    version = schema_version(path)
    if version > SCHEMA_VERSION:
        raise LakeError(
            f"the lake at {path} has schema {version}, newer than this gpureport's {SCHEMA_VERSION}; upgrade gpureport"
        )
    if version == SCHEMA_VERSION:
        return Migrated(version, version, 0, ())
    found = list(_lacking(Lake(path)))
    if not is_rehearsal:
        with changing_in_place(path):
            for _, file, missing in found:
                _complete(path, file, missing)
            write_marker(path)
    days = tuple(sorted({partition.date for partition, _, _ in found}))
    return Migrated(version, SCHEMA_VERSION, len(found), days)


def _lacking(lake: Lake) -> Iterator[tuple[Partition, Path, list[Column]]]:
    """Files without all columns of their table, and those that they lack; all are looked at before any is changed."""
    for table in TABLES:
        for partition in lake.partitions(table.name):
            for file in partition.files:
                if missing := _missing(table, file):
                    yield partition, file, missing


def _missing(table: Table, file: Path) -> list[Column]:
    try:
        names = set(pq.read_schema(file).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise LakeError(f"{file} cannot be read ({error}); export or import that day again") from error
    missing = [column for column in table.columns if column.name not in names]
    if needed := [column.name for column in missing if not (column.nullable or column.type == pa.string())]:
        raise LakeError(f"{file} lacks {', '.join(needed)}, which cannot be unknown; export or import that day into a new lake")
    return missing


def _complete(lake_path: Path, file: Path, missing: list[Column]) -> None:
    """The same rows with nothing in the missing columns; readers see the old file or the new one."""
    rows = pq.ParquetFile(file).read()
    for column in missing:
        unknown = pa.nulls(rows.num_rows, held_type(column))
        rows = rows.append_column(column.name, unknown if column.nullable else unknown.fill_null(""))
    metadata = {key.decode(): value.decode() for key, value in (rows.schema.metadata or {}).items()}
    draft = file.with_suffix(".draft")
    with disk_errors(lake_path):
        write_parquet(rows, draft, metadata)
        draft.replace(file)
