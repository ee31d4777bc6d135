"""Snapshots of days that are over, joined into one file a table and day: one every five minutes makes 288."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.change import Staged, keep, stored
from gpureport.lake.parquet import ROW_GROUP_ROWS
from gpureport.lake.paths import day_of, partition_folder
from gpureport.lake.root import Stored
from gpureport.tables import SOURCE
from gpureport.tables.table import Table

Files = Mapping[Stored, Path]


def joined(table: Table, key: str, files: Files, staging: Path, change: str) -> Staged:
    """The snapshots of a table's day as one file."""
    rows = (batch for path in files.values() for batch in _batches(table, path))
    return _rewritten(table, key, files, rows, 0, staging, change)


def without_time(table: Table, key: str, files: Files, time_ms: int, staging: Path, change: str) -> Staged:
    """Joined snapshots without the one of a time, which is about to come anew."""
    column = "start_at" if table is SOURCE else "observed_at"
    instant = pa.scalar(time_ms, pa.timestamp("ms"))
    batches = (batch for path in files.values() for batch in _batches(table, path))
    import pyarrow.compute as pc  # whoever reads a lake does without it

    rows = (batch.filter(pc.not_equal(batch[column], instant)) for batch in batches)
    return _rewritten(table, key, files, rows, 1, staging, change)


def _batches(table: Table, path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            yield pa.Table.from_batches([batch]).select(table.schema.names).cast(table.schema)


def _rewritten(table: Table, key: str, files: Files, rows: Iterable[pa.Table], number: int, staging: Path, change: str) -> Staged:
    first = min(each.first_ms or 0 for each in files)
    last = max(each.last_ms or 0 for each in files)
    folder = staging / partition_folder(table.name, *day_of(key))
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number:04d}"
    with _writer(draft, table) as writer:
        count = _write_all(writer, rows)
    made = keep(draft, f"{number:04d}.{first}.{last}", count)
    return Staged(table.name, key, {stored(table.name, key, made, change): made} if count else {}, rewritten=frozenset(files))


@contextmanager
def _writer(path: Path, table: Table) -> Iterator[pq.ParquetWriter]:
    with pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1, write_page_checksum=True) as writer:
        yield writer


def _write_all(writer: pq.ParquetWriter, tables: Iterable[pa.Table]) -> int:
    """Row groups of a usual size, whatever the size of the parts, and no more than one in memory; how many rows."""
    waiting: list[pa.Table] = []
    count = 0
    for rows in tables:
        count += rows.num_rows
        waiting.append(rows)
        if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
            writer.write_table(pa.concat_tables(waiting))
            waiting = []
    if waiting:
        writer.write_table(pa.concat_tables(waiting))
    return count
