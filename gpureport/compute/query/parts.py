"""Tables that are made part by part, in the order of their keys, so that memory holds the joins of one part only.

The header sets the parts: ``parts: 150000 rows of period.figure by cluster, namespace, pod``. For each part, tables with these
keys show the query only rows in a range of the keys; other tables show all rows. A second database has views of them, and
comes first in the search path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from gpureport.values.text.safe import quoted

_SAMPLED = 5_000


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
        ((count,),) = con.execute(f"select count(*) from {self.table}").fetchall()
        if count <= self.row_count:
            return [""]
        sample = f"select {', '.join(self.keys)} from {self.table} using sample reservoir({_SAMPLED} rows) repeatable (1)"
        found = con.execute(f"from ({sample}) order by all").fetchall()
        number = -(-count // self.row_count)
        edges = list(dict.fromkeys(found[len(found) * each // number] for each in range(1, number)))
        return [_between(self.keys, low, high) for low, high in zip([None, *edges], [*edges, None], strict=True)]


def _between(keys: Sequence[str], low: Sequence[str] | None, high: Sequence[str] | None) -> str:
    """SQL condition of a part; it also limits the first key alone, which skips whole files."""
    lower = [f"{keys[0]} >= {quoted(low[0])}", f"not ({_below(keys, low)})"] if low else []
    return " and ".join([*lower, *([f"{keys[0]} <= {quoted(high[0])}", f"({_below(keys, high)})"] if high else [])])


def _below(keys: Sequence[str], edge: Sequence[str]) -> str:
    """SQL condition of the keys that sort before ``edge``."""
    (key, *keys), (value, *edge) = keys, edge
    equal = f" or ({key} = {quoted(value)} and ({_below(keys, edge)}))" if keys else ""
    return f"{key} < {quoted(value)}{equal}"


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
