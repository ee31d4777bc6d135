"""``lake.device_sample`` as one pass over a few parts wants it: what no row carries is a constant, decimals stay decimals.

A product of decimals is a product of whole numbers, several times as fast as a cast to double, and sums of it are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.views import create_view, rows_in
from gpureport.values.errors import LakeError
from gpureport.values.tables import DEVICE_SAMPLE
from gpureport.values.tables.table import Column

if TYPE_CHECKING:
    import duckdb

_LONGEST_MS = 3_600_000
"""No row is in force for longer than an hour."""
_LARGEST = 10**18
"""The first whole number that a decimal of eighteen digits does not hold."""


def footer(file: Path) -> pq.FileMetaData:
    """A Parquet file's footer; LakeError where it cannot be read."""
    try:
        return pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise LakeError(f"{file} cannot be read ({error}); export or import that day again") from error


def scan_view(con: duckdb.DuckDBPyConnection, files: Collection[Path], rows: str = "") -> None:
    """Put ``lake.device_sample`` over some parts, or over the rows that a statement reads of them.

    Columns in which they hold nothing, or that they lack as older files do, are null; a column that a file holds as doubles, or
    with a number too large to be weighed by milliseconds as a decimal, comes as doubles, as in every other view.
    """
    footers = [footer(file) for file in files]
    there = {name for each in footers for name in each.schema.names}
    replaced = {each.name: told for each in DEVICE_SAMPLE.columns if each.name in there and (told := _told(each, footers))}
    lacking = [each.name for each in DEVICE_SAMPLE.columns if each.name not in there]
    create_view(con, "lake.device_sample", rows or rows_in(files), replaced, lacking)


def _told(column: Column, footers: Sequence[pq.FileMetaData]) -> str:
    """Expression in the view in place of the column; '' where it is the column itself."""
    if column.nullable and all(_is_null(chunk) for each in footers for chunk in _chunks(each, column.name)):
        return f"null::{'integer' if pa.types.is_integer(column.type) else 'double'}"
    if column.decimals is None or all(_can_be_weighed(chunk, column) for each in footers for chunk in _chunks(each, column.name)):
        return ""
    return f"{column.name}::double"


def _chunks(metadata: pq.FileMetaData, name: str) -> Iterator[pq.ColumnChunkMetaData]:
    if name in metadata.schema.names:
        index = metadata.schema.names.index(name)
        yield from (metadata.row_group(number).column(index) for number in range(metadata.num_row_groups))


def _is_null(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values


def _can_be_weighed(chunk: pq.ColumnChunkMetaData, column: Column) -> bool:
    """Joules are what they are over the row's span: nothing weighs them by time."""
    statistics = chunk.statistics
    if statistics is None or statistics.logical_type.type != "DECIMAL":
        return False
    if "_joules" in column.name or _is_null(chunk):
        return True
    places = column.decimals or 0
    return bool(statistics.has_min_max and max(abs(statistics.min), abs(statistics.max)) * 10**places * _LONGEST_MS < _LARGEST)


def known_columns(metadata: pq.FileMetaData) -> set[str]:
    """The columns of which a file holds any value."""
    return {name for name in metadata.schema.names if not all(map(_is_null, _chunks(metadata, name)))}


def is_plain(metadata: pq.FileMetaData) -> bool:
    """Whether every decimal of the file can be weighed by milliseconds as a whole number; else only SQL sums it."""
    held = [column for column in DEVICE_SAMPLE.columns if column.decimals is not None]
    return all(_can_be_weighed(chunk, column) for column in held for chunk in _chunks(metadata, column.name))
