"""Encoding of lake files: Snappy (Zstandard where there are lists), 122,880-row groups, an encoding for each column's values.

Measured in docs/benchmarks.md: these encodings halve the size of the writer's defaults; stronger compression saves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gpureport.values.tables.table import Column, Table

ROW_GROUP_ROWS = 122_880
_PROBE_ROWS = 8_192
_DECIMAL_DIGITS = 18
"""The decimal digits that fit into a 64-bit integer."""
_DICTIONARY_SHARE = 0.25
"""A dictionary is smaller up to this share of distinct values."""


def write_parquet(rows: pa.Table, path: Path, metadata: Mapping[str, str], table: Table | None = None) -> None:
    """Write rows to a file. The bytes depend only on rows and metadata. A lake table defines which columns are decimals."""
    rows = _with_decimals(rows, table) if table else rows
    dictionary, encodings = _encodings(rows)
    lists = [f"{field.name}.list.element" for field in rows.schema if pa.types.is_list(field.type)]
    if metadata:
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **metadata})
    pq.write_table(
        rows,
        path,
        # Here Snappy is 3 % larger than zstd in a fifth less time. Lists have only a dictionary; zstd halves them.
        compression="zstd" if lists else "snappy",
        compression_level=9 if lists else None,
        row_group_size=ROW_GROUP_ROWS,
        use_dictionary=[*dictionary, *lists],
        column_encoding=encodings,
        write_statistics=True,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    )


def dated(rows: pa.Table, day: date) -> pa.Table:
    """Return the rows with their day as a column, for readers that do not parse the file's path."""
    return rows if "date" in rows.column_names else rows.append_column("date", pa.repeat(pa.scalar(day), rows.num_rows))


def held_type(column: Column) -> pa.DataType:
    """Return the file type of a column without any value."""
    return column.type if column.decimals is None else pa.decimal64(_DECIMAL_DIGITS, column.decimals)


def _with_decimals(rows: pa.Table, table: Table) -> pa.Table:
    for number, column in enumerate(table.columns):
        if column.decimals is not None:
            rows = rows.set_column(number, column.name, _to_decimal(rows.column(column.name), column.decimals))
    return rows


def _to_decimal(column: pa.ChunkedArray, places: int) -> pa.ChunkedArray | pa.Array:
    """Return the numbers as decimals. A column with a too large number is unchanged, so that a wrong value stays visible."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.decimal64(_DECIMAL_DIGITS, places))
    array = column.combine_chunks()
    whole = scaled(array.fill_null(0.0).to_numpy() if array.null_count else array.to_numpy(), 10.0**places, 10.0**_DECIMAL_DIGITS)
    if whole is None:
        return column
    is_valid = np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little") if array.null_count else None
    buffers = [None if is_valid is None else pa.py_buffer(is_valid), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.decimal64(_DECIMAL_DIGITS, places), len(whole), buffers, array.null_count)


def scaled(values: NDArray[np.float64], factor: float, limit: float) -> NDArray[np.int64] | None:
    """Return values × factor, with halves rounded to the nearest even number; None where one is not below the limit."""
    whole = np.rint(values * factor)
    return whole.astype(np.int64) if (np.abs(whole) < limit).all() else None


def _encodings(rows: pa.Table) -> tuple[list[str], dict[str, str]]:
    """Return the columns for a dictionary and the encodings of the others. The writer chooses for nested columns."""
    dictionary: list[str] = []
    encodings: dict[str, str] = {}
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        encoding = None if _is_repetitive(rows.column(field.name)) else _plain_encoding(field.type)
        if encoding is None:
            dictionary.append(field.name)
        else:
            encodings[field.name] = encoding
    return dictionary, encodings


def _is_repetitive(column: pa.ChunkedArray) -> bool:
    probe = column.slice(0, _PROBE_ROWS)
    import pyarrow.compute as pc  # only writers need pyarrow.compute

    return column.null_count == len(column) or bool(pc.count_distinct(probe).as_py() <= max(1, _DICTIONARY_SHARE * len(probe)))


def _plain_encoding(kind: pa.DataType) -> str | None:
    if pa.types.is_floating(kind):
        return "BYTE_STREAM_SPLIT"
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal(kind):
        return "DELTA_BINARY_PACKED"
    return "PLAIN" if pa.types.is_boolean(kind) else None
