"""Rows of one table, kept as Arrow batches so that an observation of any size takes little memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from gpureport.tables.table import Table

_BATCH_ROWS = 2_000
_EMPTY = {pa.types.is_string: "", pa.types.is_boolean: False, pa.types.is_map: {}, pa.types.is_list: ()}


class Rows:
    """Collects rows as they come; a column that a row leaves out is '', false, empty, or null where null is allowed."""

    def __init__(self, table: Table, observed_at_ms: int) -> None:
        self._table = table
        self._observed_at_ms = observed_at_ms
        self._waiting: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""
        self._waiting.append(row)
        if len(self._waiting) >= _BATCH_ROWS:
            self._pack()

    def arrow(self) -> pa.Table:
        """All rows in the order of the table's grain."""
        self._pack()
        rows = pa.Table.from_batches(self._batches, self._table.schema)
        return rows.sort_by([(name, "ascending") for name in self._table.grain]) if rows.num_rows else rows

    def _pack(self) -> None:
        if self._waiting:
            columns = [self._column(field) for field in self._table.schema]
            self._batches.append(pa.record_batch(columns, schema=self._table.schema))
            self._waiting = []

    def _column(self, field: pa.Field) -> pa.Array:
        if field.name == "observed_at":
            return pa.array([self._observed_at_ms] * len(self._waiting), field.type)
        name = field.name
        try:
            found = [row[name] for row in self._waiting]
        except KeyError:
            found = [row.get(name, _missing(field)) for row in self._waiting]
        return _maps(found, field.type) if pa.types.is_map(field.type) else pa.array(found, field.type)


def _missing(field: pa.Field) -> Any:
    return None if field.nullable else next((empty for is_kind, empty in _EMPTY.items() if is_kind(field.type)), None)


def _maps(found: Sequence[Mapping[str, Any]], kind: pa.MapType) -> pa.Array:
    """Keys and values of all rows end to end: a third of the time that Arrow takes to look into each."""
    offsets = [0]
    keys: list[str] = []
    values: list[Any] = []
    for each in found:
        keys += each
        values += each.values()
        offsets.append(len(keys))
    columns = pa.array(keys, kind.key_type), pa.array(values, kind.item_type)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), *columns, type=kind)
