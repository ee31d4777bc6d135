"""Tables that are made part by part, in the order of their keys, so that memory holds the joins of one part only.

The header sets the parts: ``parts: 150000 rows of period.figure by cluster, namespace, pod``. For each part, tables with these
keys show the query only rows in a range of the keys; other tables show all rows. A second database has views of them, and
comes first in the search path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import duckdb

from gpureport.values.text.safe import quoted

_SAMPLED = 5_000
_FULL = 1.4
"""Largest part, as a multiple of the header's row count; with 1, many parts are half empty."""


@dataclass(frozen=True)
class Parts:
    """The approximate row count of a part, the table with these rows, and the keys whose rows stay together in a part."""

    row_count: int
    table: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Parts:
        """Parse the header's text."""
        count, _, _, table, _, *keys = text.replace(",", "").split()
        return cls(int(count), table, tuple(keys))

    def ranges(self, con: duckdb.DuckDBPyConnection) -> list[str]:
        """The SQL condition of each part, from a sample of the keys; only '' where all rows make one part."""
        first, *others = self.keys
        ((count, is_one),) = con.execute(f"select count(*), min({first}) = max({first}) from {self.table}").fetchall()
        if count <= self.row_count:
            return [""]
        keys = others if is_one and others else self.keys  # most lakes have one cluster
        sample = f"select {', '.join(keys)} from {self.table} using sample reservoir({_SAMPLED} rows) repeatable (1)"
        rows = con.execute(f"from ({sample}) order by all").fetchall()
        return list(_ranges(rows, keys, _FULL * len(rows) * self.row_count / count, []))


def _ranges(rows: Sequence[Sequence[str]], keys: Sequence[str], row_count: float, fixed: Sequence[str]) -> Iterator[str]:
    """Yield SQL conditions in the order of the keys. They cover all keys; each is true for about ``row_count`` rows at most.

    A condition compares single keys with constants: a scan skips the rows that it excludes. A value with more rows is divided by
    the next key.
    """
    (key, *others), after, size = keys, fixed, 0
    for value, group in groupby(rows, itemgetter(0)):
        inner = [row[1:] for row in group]
        is_divided = bool(others) and len(inner) > row_count
        if is_divided or (size and size + len(inner) > row_count):
            yield " and ".join([*after, f"{key} < {quoted(value)}"])
            after, size = [*fixed, f"{key} >= {quoted(value)}"], 0
        if is_divided:
            yield from _ranges(inner, others, row_count, [*fixed, f"{key} = {quoted(value)}"])
            after = [*fixed, f"{key} > {quoted(value)}"]
        size += 0 if is_divided else len(inner)
    yield " and ".join(after)


@contextmanager
def narrowed(con: duckdb.DuckDBPyConnection, tables: Sequence[str], keys: Sequence[str], condition: str) -> Iterator[None]:
    """Within the block, tables with the keys show only the rows of a condition."""
    columns = {table: {*con.table(table).columns} for table in tables}
    con.execute("attach ':memory:' as part")
    try:
        for table in tables:
            where = f"where {condition}" if columns[table].issuperset(keys) else ""
            con.execute(f"create schema if not exists part.{table.partition('.')[0]}")
            con.execute(f"create view part.{table} as from memory.{table} {where}")
        con.execute("set search_path = 'part.main,memory.main'")
        yield
    finally:
        con.execute("use memory; detach part")
