"""gpureport.duckdb: the report's tables and the facts behind them, as real tables, so that the file can be mailed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from gpureport.report.header import Header
from gpureport.report.results import Result


def write_database(con: duckdb.DuckDBPyConnection, results: Sequence[Result], header: Header, path: Path) -> Path:
    """Write a new file with report.*, facts.* and meta; the same rows as in the other files."""
    path.unlink(missing_ok=True)
    con.execute(f"attach '{str(path).replace(chr(39), chr(39) * 2)}' as file")
    try:
        con.execute("create schema file.report; create schema file.facts")
        for result in results:
            _copy_report(con, result)
        for name in _facts(con):
            con.execute(f"create table file.facts.{name} as select * from facts.{name} order by all")
        _write_meta(con, header)
    finally:
        con.execute("detach file")
    return path


def _copy_report(con: duckdb.DuckDBPyConnection, result: Result) -> None:
    """The rounded rows under the types and column order of the table that the query built."""
    con.execute(f"create table file.report.{result.name} as select * from report.{result.name} limit 0")
    order = ", ".join(result.query.grain)
    rounded = result.rows
    con.register("_rounded", rounded)
    names = ", ".join(rounded.columns)
    rest = [name for name in result.query.columns if name not in rounded.columns]
    if not rest:
        con.execute(f"insert into file.report.{result.name} by name select {names} from _rounded order by {order}")
    else:
        keys = ", ".join(result.query.grain)
        con.execute(
            f"insert into file.report.{result.name} by name select _rounded.*, built.{rest[0]} "
            f"from _rounded inner join report.{result.name} as built using ({keys}) order by {order}"
        )
    con.unregister("_rounded")


def _facts(con: duckdb.DuckDBPyConnection) -> list[str]:
    rows = con.execute("select table_name from information_schema.tables where table_schema = 'facts' order by 1").fetchall()
    return [row[0] for row in rows]


def _write_meta(con: duckdb.DuckDBPyConnection, header: Header) -> None:
    con.execute("create table file.main.meta (name varchar primary key, value varchar)")
    described = header.as_dict()
    rows = [(name, str(described[name])) for name in ("gpureport_version", "window", "clusters", "coverage", "config_hash")]
    con.executemany("insert into file.main.meta values (?, ?)", rows)
