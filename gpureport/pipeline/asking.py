"""SQL over a lake and its report, and the documented schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from duckdb import DuckDBPyConnection

from gpureport.compute import connection
from gpureport.config import Config
from gpureport.documents.schema import render_schema
from gpureport.errors import LakeError
from gpureport.facts.kept import KEPT
from gpureport.lake import Lake, open_lake, views
from gpureport.pipeline.reporting import open_report
from gpureport.query import load
from gpureport.row_printing import Output
from gpureport.sql_prompt import answer, prompt
from gpureport.store import ObjectAddress
from gpureport.tables import TABLES
from gpureport.window import Window, day_start

_STORED = [*(table.name for table in TABLES), *(table.replace(".", "/") for table in KEPT)]
_NAMED = re.compile(r"""\b(lake|facts|report)"?\."?(\w+)""", re.IGNORECASE)


def sql(config: Config, statement: str | None, output: Output, now: datetime, say: Callable[[str], None]) -> None:
    """One statement's rows on standard output, or a prompt; report.* spans all days that have facts.

    Of a lake on object storage only the tables that a statement names are fetched; of one in a folder the report is
    made unless a statement names other tables alone.
    """
    lake = open_lake(config.lake)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        tables = _Tables(con, config, lake, now, say)
        if not isinstance(config.lake, ObjectAddress):
            names_its_tables = statement and _NAMED.search(statement)
            tables.open(_STORED if names_its_tables else {"report", *_STORED})
        if statement:
            tables.open_named(statement)
            answer(con, statement, output, sys.stdout)
        else:
            prompt(con, output, sys.stdin, sys.stdout, tables.open_named)


@dataclass
class _Tables:
    """The tables that a database has of a lake: views over its files, and report.* as a whole."""

    con: DuckDBPyConnection
    config: Config
    lake: Lake
    now: datetime
    say: Callable[[str], None]
    opened: set[str] = field(default_factory=set)

    def open_named(self, statement: str) -> None:
        """Open those that a statement names; facts that no lake holds are made for the report."""
        named = [(schema.lower(), table.lower()) for schema, table in _NAMED.findall(statement)]
        files = {table for schema, table in named if schema == "lake"}.intersection(_STORED)
        made = {f"{schema}/{table}" for schema, table in named if schema != "lake"}
        self.open(files | {name if name in _STORED else "report" for name in made})

    def open(self, names: Collection[str]) -> None:
        """Open tables, unless they are; report.* first, for it leaves views of its own window behind."""
        new = {*names} - self.opened
        self.opened |= new
        if "report" in new:
            self._open_report_if_whole()
            new |= self.opened
        views(self.con, self.lake, [table for table in _STORED if table in new])

    def _open_report_if_whole(self) -> None:
        """report.* over all days that have facts; where they do not fit together, lake.* and facts.* must do, which is said."""
        days = [each.date for each in self.lake.partitions("facts/device_hour")]
        if not days:
            return
        window = Window(day_start(min(days)), day_start(max(days)) + timedelta(days=1))
        try:
            open_report(self.con, self.config, self.lake, window, self.now)
        except LakeError as error:
            self.say(f"warning: there is no report.* here: {error}")


def schema() -> str:
    """Every table's columns, types and meaning, as Markdown."""
    return render_schema(load())
