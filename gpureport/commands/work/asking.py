"""SQL over a lake and its report, and the largest of its teams, workloads and GPUs."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from difflib import get_close_matches
from functools import cached_property

from duckdb import DuckDBPyConnection

from gpureport.commands.work.settings import facts_made_with, report_settings, reported_lake
from gpureport.commands.work.sql_prompt import Session, confine
from gpureport.compute.fact_views import ROLLED_UP
from gpureport.compute.period import WindowTables
from gpureport.compute.query import connection, load, of_life
from gpureport.config import Config
from gpureport.lake import Lake, views
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.runtime.resources import QUERIES
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.text.rows import Output, print_rows
from gpureport.values.window import Window, day_start

_SERIALIZED = re.compile(r'"schema_name":"(lake|facts|period|previous|report)","table_name":"(\w+)"', re.IGNORECASE)
_PRICED = {"report.cost", "report.focus", "report.team_budget", "report.team_cost"}
_WORDS = re.compile(r"""\b(lake|facts|period|previous|report)"?\."?(\w+)""", re.IGNORECASE)


def sql(
    config: Config,
    statement: str | None,
    output: Output,
    window: Window | None,
    rows_at_most: int | None,
    allow_files: bool = False,
) -> None:
    """One statement's rows on standard output, or a prompt; tables are opened and built as statements name them.

    Without a window report.* spans all days that have facts, and the others all that the lake holds. Files other than the lake's
    can be neither read nor written, unless that is allowed.
    """
    lake = reported_lake(config)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        if not allow_files:
            confine(con, [lake.path, QUERIES])
        session = Session(con, Tables(con, config, lake, window).open_named, output, sys.stdout, rows_at_most, allow_files)
        if statement:
            session.answer(statement)
        else:
            session.prompt(sys.stdin)


@dataclass
class Tables:
    """The tables that a database has of a lake: views over its files, and what is built over the facts of a window."""

    con: DuckDBPyConnection
    config: Config
    lake: Lake
    asked: Window | None
    opened: set[str] = field(default_factory=set)

    def open_named(self, statement: str) -> None:
        """Open or build those that a statement names, and are not there."""
        named = _named(self.con, statement) - self.opened
        if not named:
            return
        lake = sorted(table for table in named if table.removeprefix("lake.") in TABLE_BY_NAME)
        there = {*load(), *(f"lake.{table}" for table in TABLE_BY_NAME)}
        for unknown in sorted(named - there):
            close = " or ".join(get_close_matches(unknown, there, n=2))
            raise UsageError(f"there is no table {unknown}; {close and f'did you mean {close}? '}'show tables' lists all")
        facts = {*of_life(load(), "facts")} - {*ROLLED_UP}
        kept, made = sorted(named.intersection(facts)), sorted(named.intersection({*load()} - facts))
        if made:
            self._window_tables.build(made)
            for table in [] if "gpu_hour" in report_settings(self.config).prices else sorted(_PRICED.intersection(made)):
                print(f"{table} has no costs: set gpu_hour and currency under [prices] in the configuration", file=sys.stderr)
            kept = sorted(self.opened.intersection(facts).union(kept))  # of a whole history some were opened
        files = [*(table.removeprefix("lake.") for table in lake), *(table.replace(".", "/") for table in kept)]
        views(self.con, self.lake, files, dates=None if self.asked is None else list(self.asked.days()))
        self.opened.update(lake, kept, made)

    @cached_property
    def _window_tables(self) -> WindowTables:
        made_with = facts_made_with(self.config)
        return WindowTables(self.con, self.lake, self.asked or self._whole(), report_settings(self.config), made_with)

    def _whole(self) -> Window:
        """All days that have facts."""
        days: list[date] = [each.date for each in self.lake.computed_days()]
        if not days:
            raise LakeError(f"the lake at {self.lake} has no facts yet; run 'gpureport compute --date' for each day")
        return Window(day_start(min(days)), day_start(max(days)) + timedelta(days=1))


def _named(con: DuckDBPyConnection, statement: str) -> set[str]:
    """Tables of the lake that a statement names, as DuckDB parses it; of one that is no query its words tell."""
    [(serialized,)] = con.execute("select json_serialize_sql($sql)::varchar", {"sql": statement}).fetchall()
    is_no_query = '"error_type":"not implemented"' in serialized[:60]
    pattern, text = (_WORDS, statement) if is_no_query else (_SERIALIZED, serialized)
    return {f"{schema}.{table}".lower() for schema, table in pattern.findall(text)}


def top(config: Config, what: str, window: Window, output: Output, count: int) -> None:
    """The largest teams or workloads, or the GPUs with findings first, on standard output."""
    from gpureport.commands.work.reporting import refuse_cut_hours
    from gpureport.report.page.own_grids import TOP_TABLES
    from gpureport.report.page.own_grids import top as rows_of

    lake, made_with = reported_lake(config), facts_made_with(config)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        refuse_cut_hours(con, lake, window)
        built = [*TOP_TABLES, "period.price", "period.workload"]
        WindowTables(con, lake, window, report_settings(config), made_with).build(built)
        print(window, file=sys.stderr)
        print_rows(*rows_of(con, what, window.seconds / 3600, count), output, sys.stdout)
