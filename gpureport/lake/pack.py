"""Few files: snapshots of days that are over in one file a table and day, facts of days that are over in one a table and month.

The root names a packed file under each day of it that counts. A day that is replaced or removed later is not named there any
more: readers leave its rows out, and they go when the month is packed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.change import Staged, keep, stored
from gpureport.lake.commit import new_change
from gpureport.lake.parquet import ROW_GROUP_ROWS, dated
from gpureport.lake.paths import FACTS, day_of, packed_name, partition_folder
from gpureport.lake.root import Root, Stored
from gpureport.values.tables import SOURCE
from gpureport.values.tables.table import Table

Files = Mapping[Stored, Path]
_LOOSE_DAYS = 7
"""As many days of a month that is not over are packed without waiting for its end."""
_LARGEST_BYTES = 256 << 20
"""Size from which files are not packed together: they are large enough already."""


def due_months(root: Root, before: date, is_partial_only: bool) -> list[tuple[str, dict[str, tuple[Stored, ...]]]]:
    """The months of tables of facts that are to be packed, with their days before this one; those of most files first.

    Packed files of which some days do not count any more come before all, or alone.
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
    """The files with their sizes."""
    return {each.name: each.byte_count for files in days.values() for each in files}


def _is_due(days: Mapping[str, tuple[Stored, ...]], is_over: bool) -> bool:
    files, loose = _names(days), sum(not held[0].is_packed for held in days.values())
    return sum(files.values()) <= _LARGEST_BYTES and (loose >= _LOOSE_DAYS or (is_over and len(files) > 1))


def packed(table: str, days: Mapping[str, Files], staging: Path) -> tuple[dict[str, Stored], Path]:
    """Days of a cluster as one file: what the root says of it for each, and where it lies."""
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
    """The snapshots of a table's day as one file, but for the one of a time that is about to come anew."""
    rows = (batch for path in files.values() for batch in _batches(table, path))
    if left_out_ms is not None:
        import pyarrow.compute as pc  # whoever reads a lake does without it

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
    """Row groups of a usual size, whatever the size of the parts, and no more than one in memory; how many rows."""
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
