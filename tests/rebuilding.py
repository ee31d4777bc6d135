"""The queries to build again over existing tables when some tables get other rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import duckdb

from gpureport.compute.query import Query, needed
from gpureport.compute.quotas import RULES


def empty_rule_tables(con: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of schedulers' rules without rows: for queries without data."""
    con.execute("create schema if not exists day")
    for table in (table for rule in RULES for table in rule.makes):
        con.register("made", table.schema.empty_table())
        con.execute(f"create or replace table {table.name} as from made")
        con.unregister("made")


def touched(
    queries: Mapping[str, Query], targets: Iterable[str], given: Collection[str], changed_params: Collection[str] = ()
) -> Iterator[Query]:
    """The targets' queries that read a given table or a changed parameter, directly or through other tables."""
    wanted, others = set(given), set(changed_params)
    for query in needed(queries, targets, given):
        if not wanted.isdisjoint(query.reads) or not others.isdisjoint(query.params):
            wanted.add(query.table)
            yield query
