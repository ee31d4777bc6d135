"""Tables that are made part by part of their keys, in their order, so that memory holds what is joined for one part.

A header says how: ``parts: 150000 rows of period.figure by cluster, namespace, pod``. The query then sees, of each table that
has these keys, the rows of a range of them, and all of every other table: views of a database beside, which is looked in first.
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
    """About how many rows of a table make a part, and the keys whose rows are in one part together."""

    row_count: int
    table: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Parts:
        """What a header says."""
        count, _, _, table, _, *keys = text.replace(",", "").split()
        return cls(int(count), table, tuple(keys))

    def ranges(self, con: duckdb.DuckDBPyConnection) -> list[str]:
        """Each part's rows as a condition, by a sample of the keys; '' alone where all rows make one."""
        ((count,),) = con.execute(f"select count(*) from {self.table}").fetchall()
        if count <= self.row_count:
            return [""]
        sample = f"select {', '.join(self.keys)} from {self.table} using sample reservoir({_SAMPLED} rows) repeatable (1)"
        found = con.execute(f"from ({sample}) order by all").fetchall()
        number = -(-count // self.row_count)
        edges = list(dict.fromkeys(found[len(found) * each // number] for each in range(1, number)))
        return [_between(self.keys, low, high) for low, high in zip([None, *edges], [*edges, None], strict=True)]


def _between(keys: Sequence[str], low: Sequence[str] | None, high: Sequence[str] | None) -> str:
    """Condition of a part; the first key by itself too, which leaves whole files out."""
    lower = [f"{keys[0]} >= {quoted(low[0])}", f"not ({_below(keys, low)})"] if low else []
    return " and ".join([*lower, *([f"{keys[0]} <= {quoted(high[0])}", f"({_below(keys, high)})"] if high else [])])


def _below(keys: Sequence[str], edge: Sequence[str]) -> str:
    """Condition of keys that sort before these."""
    (key, *keys), (value, *edge) = keys, edge
    equal = f" or ({key} = {quoted(value)} and ({_below(keys, edge)}))" if keys else ""
    return f"{key} < {quoted(value)}{equal}"


@contextmanager
def narrowed(con: duckdb.DuckDBPyConnection, tables: Sequence[str], keys: Sequence[str], condition: str) -> Iterator[None]:
    """Let tables that have the keys hold only rows of a condition, within the block."""
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
