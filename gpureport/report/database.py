"""gpureport.duckdb: the report's tables and the facts behind them, as real tables, so that the file can be mailed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import orjson

from gpureport.query import load
from gpureport.report.header import Header
from gpureport.report.results import Result


def write_database(con: duckdb.DuckDBPyConnection, results: Sequence[Result], header: Header, path: Path) -> Path:
    """Write a new file with report.*, facts.* and meta; the same rows as in the other files, columns commented."""
    path.unlink(missing_ok=True)
    con.execute(f"attach {_quoted(str(path))} as file")
    try:
        with _at_once(con):
            con.execute("create schema file.report; create schema file.facts")
        for result in results:
            with _at_once(con):
                _copy_report(con, result.anew())
        for name, order in _facts(con).items():
            con.execute(f"create table file.facts.{name} as select * from facts.{name} order by {order}")
        with _at_once(con):
            _write_meta(con, header)
    finally:
        con.execute("detach file")
    return path


@contextmanager
def _at_once(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """One transaction a table, or each of its comments would wait for the disk; all tables in one would wait in memory."""
    con.begin()
    try:
        yield
        con.commit()
    except BaseException:
        with suppress(duckdb.Error):  # where the disk is full there may be nothing left to roll back
            con.rollback()
        raise


def _copy_report(con: duckdb.DuckDBPyConnection, result: Result) -> None:
    """The rounded rows under the types and column order of the table that the query built."""
    table, order = f"file.report.{result.name}", ", ".join(result.query.grain)
    con.execute(f"create table {table} as select * from report.{result.name} limit 0")
    con.register("_rounded", result.rows)
    rest = [name for name in result.query.columns if name not in result.rows.columns]
    kept = (
        f"inner join (select {', '.join([*result.query.grain, *rest])} from report.{result.name}) using ({order})" if rest else ""
    )
    con.execute(f"insert into {table} by name select * from _rounded {kept} order by {order}")
    con.unregister("_rounded")
    _comment(con, table, result)


def _comment(con: duckdb.DuckDBPyConnection, table: str, result: Result) -> None:
    """The query's documentation, where ``duckdb_tables()`` and ``duckdb_columns()`` show it."""
    con.execute(f"comment on table {table} is {_quoted(result.query.purpose)}")
    for column, doc in result.query.columns.items():
        con.execute(f"comment on column {table}.{column} is {_quoted(doc)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _facts(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Every table of the facts and the columns that order it as all would: the first ones up to the last key.

    A row's key is its own where a query built the table, and among hours. Other facts of several days may repeat one: all decide.
    """
    queries, found = load(), dict[str, str]()
    rows = con.execute(
        "select table_name, table_type = 'BASE TABLE' from information_schema.tables where table_schema = 'facts' order by 1"
    ).fetchall()
    for name, is_built in rows:
        grain, columns = queries[f"facts.{name}"].grain, con.table(f"facts.{name}").columns
        is_key = is_built or "hour_start_at" in grain
        found[name] = ", ".join(columns[: 1 + max(map(columns.index, grain))]) if is_key else "all"
    return found


def _write_meta(con: duckdb.DuckDBPyConnection, header: Header) -> None:
    """What the report says of itself, one row per thing, as JSON text."""
    con.execute("create table file.main.meta (name varchar primary key, value json)")
    rows = [(name, orjson.dumps(found).decode()) for name, found in header.as_dict().items()]
    con.executemany("insert into file.main.meta values (?, ?)", rows)
