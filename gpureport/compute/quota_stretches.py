"""Stretches of time in which something had one value, made from the changes alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

Key = tuple[str, ...]


class Stretches:
    """By scope and key, when which value stood; a scope says all that is in it anew when any of it changes."""

    def __init__(self, is_cut_by_value: bool = True) -> None:
        """Without ``is_cut_by_value`` a key's first value tells of the whole stretch."""
        self._is_cut_by_value = is_cut_by_value
        self._open: dict[Key, dict[Key, tuple[datetime, str]]] = defaultdict(dict)
        self._closed: list[tuple[str | datetime, ...]] = []

    def put(self, scope: Key, at: datetime, values: Mapping[Key, str]) -> None:
        """What stands in the scope from now on; what stood there and is not among it has ended."""
        there = self._open[scope]
        ended = there.keys() - values.keys()
        if self._is_cut_by_value:
            ended |= {key for key, (_, value) in there.items() if values.get(key, value) != value}
        for key in ended:
            since, value = there.pop(key)
            self._closed.append((*scope, *key, since, at, value))
        for key in values.keys() - there.keys():
            there[key] = (at, values[key])

    def rows(self) -> list[tuple[str | datetime, ...]]:
        """All that has ended, in order: scope, key, start, end and value."""
        return sorted(self._closed)

    def table(self, schema: pa.Schema) -> pa.Table:
        """The same as a table."""
        rows = self.rows()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
