"""gpureport.duckdb: the report's tables. Facts are included only on request, so that the file is small enough for mail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import orjson

from gpureport.compute.look_back import compared_tables
from gpureport.compute.query import Query, define_functions, dictionary, load
from gpureport.report.header import Header
from gpureport.report.results import MANY_ROWS, Result, rounded_rows
from gpureport.values.text.safe import quoted
from gpureport.values.window import plain

_BLOCK_BYTES, _MANY_BLOCK_BYTES = 16_384, 65_536
"""A column takes at least one block, and most tables are small. Larger blocks write many rows in two thirds of the time."""


def begin(con: duckdb.DuckDBPyConnection, path: Path, has_many: bool) -> None:
    """Attach a new file as ``file``, for ``move`` and then ``finished``. ``has_many`` selects larger blocks, for many rows."""
    path.unlink(missing_ok=True)
    con.execute(f"attach {quoted(path)} as file (block_size {_MANY_BLOCK_BYTES if has_many else _BLOCK_BYTES})")
    with _at_once(con):
        con.execute("create schema file.report; create schema file.facts; create schema file.period; use file")
        define_functions(con, schema="file.main")  # with the file in use, functions find those that they call
    con.execute("use memory")


def move(
    con: duckdb.DuckDBPyConnection,
    has_many: bool,
    query: Query,
    rows: str = "",
    values: Mapping[str, Any] = MappingProxyType({}),
    is_more: bool = False,
) -> int:
    """Move a report table into the file, rounded and in key order; replace it with a view of the file. Return its row count.

    With ``rows`` (SQL), those rows are written instead; no other code reads them. ``is_more`` adds them to the file's table.
    """
    table, made = query.table, rows or f"from {query.table}"
    if rows or Result(query, con).row_count:  # most tables of a small lake are empty
        shape = con.execute(f"from ({made}) limit 0", dict(values)).description or ()
        kinds = {name: str(kind) for name, kind, *_ in shape}
        made = f"{rounded_rows(kinds, made, has_many)} order by {', '.join(query.grain)}"
    making = f"insert into file.{table}" if is_more else f"create table file.{table} as"
    [[count]] = con.execute(f"{making} {made}", dict(values)).fetchall()
    if not is_more:
        con.execute(f"{'' if rows else f'drop table {table};'} create view memory.{table} as from file.{table}")
    return int(count)


@contextmanager
def finished(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    path: Path,
    has_facts: bool = False,
    is_kept: bool = True,
) -> Iterator[list[Result]]:
    """Move every report table into the file; yield the tables by name. At the end the file is at ``path``, or deleted.

    Within the block ``report.*`` are views of the file, so that memory holds no table twice. After it they are gone. A kept file
    also has the report's metadata (meta), the tables for comparison with a later report, and on request all facts.
    """
    results = [Result(queries[table], con) for table in sorted(queries)]
    attached = "select path from duckdb_databases() where database_name = 'file'"
    if not con.execute(attached).fetchone():
        begin(con, path, sum(each.row_count for each in results) > MANY_ROWS)
    ((made_at,),) = con.execute(attached).fetchall()
    try:
        moved = "select 'report.' || table_name from duckdb_tables() where database_name = 'file' and schema_name = 'report'"
        there = {table for (table,) in con.execute(moved).fetchall()}
        for result in results:
            if result.query.table not in there:
                move(con, result.row_count > MANY_ROWS, result.query)
        if is_kept:
            for name, rows in _facts(con, has_facts, header).items():
                con.execute(f"create table file.{name} as {rows}")
            with _at_once(con):
                _write_meta(con, header)
                _document(con, {**load(), **queries})
        yield results
    finally:
        con.execute("use memory; detach file")
    if is_kept:
        shutil.move(made_at, path)
    else:
        Path(made_at).unlink()


@contextmanager
def _at_once(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run the block in one transaction. One transaction for all tables would keep them all in memory."""
    con.begin()
    try:
        yield
        con.commit()
    except BaseException:
        with suppress(duckdb.Error):  # with a full disk there may be nothing left to roll back
            con.rollback()
        raise


def _facts(con: duckdb.DuckDBPyConnection, has_facts: bool, header: Header) -> dict[str, str]:
    """Return SQL for the rows of each fact table to write. Hours outside the period, of its first and last UTC day, are left out.

    They are sorted by the first columns, up to the last key column. A key is unique in tables that a query built and in hourly
    facts. Other facts may repeat a key on several days: sort by all.
    """
    queries, found = load(), dict[str, str]()
    period = ", ".join(f"timestamp '{plain(at)}'" for at in (header.window.start_at, header.window.end_at))
    read = {*compared_tables(queries), "period.workload"}  # for comparison with a later report; for the statements of findings
    rows = con.execute(
        "select table_schema || '.' || table_name, table_type = 'BASE TABLE' from information_schema.tables "
        "where table_catalog = current_database() and table_schema in ('facts', 'period') order by 1"
    ).fetchall()
    for name, is_built in rows:
        if has_facts or name in read:
            grain, columns = queries[name].grain, con.table(name).columns
            keys = columns[: 1 + max(map(columns.index, grain))] if is_built or "hour_start_at" in grain else ["all"]
            hours = f"where file.is_in_period(hour_start_at, {period})" if "hour_start_at" in columns else ""
            found[name] = f"select * from {name} {hours} order by {', '.join(keys)}"
    return found


def _write_meta(con: duckdb.DuckDBPyConnection, header: Header) -> None:
    """Write the report's metadata, one row per subject, as JSON text."""
    con.execute("create table file.main.meta (name varchar primary key, value json)")
    rows = [(name, orjson.dumps(found).decode()) for name, found in header.as_dict().items()]
    con.executemany("insert into file.main.meta values (?, ?)", rows)


def _document(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> None:
    """Comment each table and column; add a view in ``main`` for each report table, so that its bare name is enough.

    Columns of these views have no comments: two thousand comments take a fifth of a second.
    """
    texts = {"table main.meta": "The report about itself", "column main.meta.name": "subject", "column main.meta.value": "JSON"}
    there = "select schema_name || '.' || table_name, list(column_name) from duckdb_columns() where database_name = 'file' "
    con.execute("use file")  # a view resolves names when it is created
    for name, columns in con.execute(f"{there} and schema_name != 'main' group by 1 order by 1").fetchall():
        query, bare = queries[name], name.replace("report.", "main.")
        docs = {"date": "UTC day of the rows", **dictionary(), **query.columns}
        texts |= {f"table {name}": query.purpose, **{f"column {name}.{each}": docs[each] for each in columns if each in docs}}
        if bare != name:
            con.execute(f"create view {bare} as from {name}")
            texts[f"view {bare}"] = query.purpose
    con.execute(";".join(f"comment on {what} is {quoted(text)}" for what, text in texts.items()))
    con.execute("use memory")
