"""Observations of days that are over, joined into one file a table and day: a snapshot every five minutes makes 288."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpureport.errors import LakeError, first_line
from gpureport.lake.layout import Lake, Partition, is_observation, packed_part
from gpureport.lake.parquet import ROW_GROUP_ROWS
from gpureport.tables import SOURCE
from gpureport.tables.state import STATE_TABLES
from gpureport.tables.table import Table


def packable(lake: Lake, before: date) -> Iterator[tuple[Table, Partition, list[Path]]]:
    """The partitions of earlier days that hold several observations, and those parts in order of time."""
    for table in (*STATE_TABLES, SOURCE):
        for partition in lake.partitions(table.name):
            if partition.date < before and partition.observation_count > 1:
                yield table, partition, [file for file in partition.files if is_observation(file)]


def join(table: Table, partition: Partition, parts: Sequence[Path], folder: Path) -> None:
    """The partition anew in a folder: its observations as one file, every other part as it was."""
    write_packed(table, partition, parts, folder)
    for file in partition.files:
        if file not in parts:
            shutil.copyfile(file, folder / file.name)


def write_packed(table: Table, partition: Partition, parts: Sequence[Path], folder: Path) -> Path:
    """The observations of a partition as one file in a folder."""
    packed = folder / f"{packed_part(partition.date)}.parquet"
    with _writer(packed, table) as writer:
        _write_all(writer, (pq.read_table(part, schema=table.schema, partitioning=None) for part in _readable(parts)))
    return packed


def without_instant(table: Table, packed: Path, instant_ms: int, target: Path) -> None:
    """A packed file without one of its observations, which is about to come anew."""
    column = "start_at" if table is SOURCE else "observed_at"
    instant = pa.scalar(instant_ms, pa.timestamp("ms"))
    with _writer(target, table) as writer, pq.ParquetFile(packed) as file:
        batches = (pa.Table.from_batches([batch]).cast(table.schema) for batch in file.iter_batches(ROW_GROUP_ROWS))
        _write_all(writer, (rows.filter(pc.not_equal(rows[column], instant)) for rows in batches))


@contextmanager
def _writer(path: Path, table: Table) -> Iterator[pq.ParquetWriter]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1) as writer:
        yield writer


def _write_all(writer: pq.ParquetWriter, tables: Iterable[pa.Table]) -> None:
    """Row groups of a usual size, whatever the size of the parts, and no more than one in memory."""
    waiting: list[pa.Table] = []
    for rows in tables:
        waiting.append(rows)
        if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
            writer.write_table(pa.concat_tables(waiting))
            waiting = []
    if waiting:
        writer.write_table(pa.concat_tables(waiting))


def _readable(parts: Iterable[Path]) -> Iterator[Path]:
    """The parts, each once it is known to be Parquet."""
    for part in parts:
        try:
            pq.read_metadata(part)
        except (pa.ArrowInvalid, OSError) as error:
            raise LakeError(f"{part} cannot be read ({first_line(error)}); remove it, or restore it") from error
        yield part
