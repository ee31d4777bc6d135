"""Tables of a report for tests: made when a statement names them, as ``gpureport sql`` makes them, and not written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
from golden_case import NOW

from gpureport.commands.work.querying import Tables
from gpureport.commands.work.settings import reported_lake
from gpureport.compute.query import connection
from gpureport.config import load_config
from gpureport.values.window import Window, parse_period


@dataclass
class Report:
    """The tables that a report of a lake would have."""

    con: duckdb.DuckDBPyConnection
    tables: Tables

    def execute(self, statement: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
        self.tables.open_named(statement)
        return self.con.execute(statement, parameters)

    def rows(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self.execute(statement, parameters).fetchall()


@contextmanager
def report_tables(
    lake: Path,
    since: str,
    until: str | None = None,
    now: datetime = NOW,
    config_file: Path | None = None,
    cluster: str | None = None,
) -> Iterator[Report]:
    """The report of a window, of all clusters or one; each table is made once."""
    config = load_config(config_file, {}, {"lake": str(lake), "report.cluster": cluster})[0]
    window = parse_period(since, now)
    with connection() as con:
        asked = Window(window.start_at, parse_period(until, now).start_at) if until else window
        yield Report(con, Tables(con, config, reported_lake(config), asked, now=asked.end_at))


def keep_tables(lake: Path, since: str, until: str | None, tables: Collection[str], file: Path) -> None:
    """Write some tables of a report into a database, for many readers."""
    with report_tables(lake, since, until) as report, duckdb.connect(str(file)) as con:
        con.execute("create schema report; create schema facts")
        report.tables.open_named(" ".join(f"from {table};" for table in tables))
        for table in tables:
            con.register("made", report.con.sql(f"from {table}").to_arrow_table())
            con.execute(f"create table {table} as from made")
