"""SQL over a lake and its report, and its largest teams, workloads and GPUs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import duckdb
from duckdb import DuckDBPyConnection

from gpureport.commands.work.settings import facts_made_with, report_settings, reported_lake
from gpureport.compute.fact_views import ROLLED_UP
from gpureport.compute.period import WindowTables
from gpureport.compute.query import connection, load, of_life
from gpureport.config import Config
from gpureport.lake import Lake, views
from gpureport.values.errors import GpureportError, LakeError, UsageError, first_line
from gpureport.values.runtime.resources import QUERIES
from gpureport.values.tables import TABLE_BY_NAME, TABLES
from gpureport.values.text.rows import Output, print_rows
from gpureport.values.text.safe import quoted
from gpureport.values.window import Window, day_start

_GREETING = "DuckDB over lake.*, facts.* and report.*; end a statement with ';', leave with Ctrl-D. Tables: show tables;"
_SHOW_TABLES = re.compile(r"\s*(show\s+(all\s+)?tables|describe)\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(r"""\s*desc(?:ribe)?\s+"?(lake|facts|report)"?\."?(\w+)"?\s*;?\s*""", re.IGNORECASE)
_ON_TERMINAL = 1000
_WRITING = re.compile(r'\b(copy|export|import|attach)\b|\b(query|json_execute_serialized_sql)"?\s*\(', re.IGNORECASE)
"""Statements that write files, also within another statement, or that run a text which may write files."""
_CHANGING = re.compile(
    r"""\b(drop\s+\w+(\s+if\s+exists)?|delete\s+from|update|insert(\s+or\s+\w+)?\s+into|truncate(\s+table)?|alter\s+\w+(\s+if\s+exists)?
    |create\s+(or\s+replace\s+)?(\w+\s+)?(table|view)(\s+if\s+not\s+exists)?)\s+"?(lake|facts|period|previous|report)\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Session:
    """A database whose tables are built when statements name them, and the output of rows."""

    con: duckdb.DuckDBPyConnection
    prepare: Callable[[str], None]
    """Called with each statement before it runs."""
    output: Output
    out: TextIO
    rows_at_most: int | None = None
    """Limit of rows; None means 1,000 in a table, and all as CSV and JSON."""
    may_write: bool = False
    """Whether statements may write files."""

    def answer(self, text: str) -> None:
        """Run statements and print the rows of each. UsageError, with DuckDB's message, for a statement that it refuses."""
        try:
            if _CHANGING.search(bare := _without_texts(text)):
                raise UsageError("SQL: gpureport sql only reads lake.*, facts.* and report.*; change a table of your own instead")
            if not self.may_write and _WRITING.search(bare):
                raise UsageError("SQL: gpureport sql only reads; give --allow-files to write files")
            for each in self.con.extract_statements(text):
                self._answer(each.query.strip(), each)
        except duckdb.Error as error:
            hint = "; give --allow-files to read other files" if isinstance(error, duckdb.PermissionException) else ""
            close = next((f" {line}" for line in str(error).splitlines() if line.startswith("Candidate bindings")), "")
            raise UsageError(f"SQL: {first_line(error)}{close}{hint}") from None

    def _answer(self, statement: str, parsed: duckdb.Statement) -> None:
        limit = _ON_TERMINAL if self.rows_at_most is None and self.output == "table" else self.rows_at_most
        self.prepare(statement)
        cursor = self.con.execute(parsed)
        if _SHOW_TABLES.fullmatch(statement):
            print_rows(["table", "holds"], _describe_tables(), self.output, self.out)
        elif described := _DESCRIBE.fullmatch(statement):
            meanings = _meanings(*described.groups())
            rows = [(name, kind, meanings.get(name, "")) for name, kind, *_ in cursor.fetchall()]
            print_rows(["column", "type", "meaning"], rows, self.output, self.out)
        elif names := [column[0] for column in cursor.description or ()]:
            print_rows(names, iter(cursor.fetchone, None), self.output, self.out, limit)
            if limit is not None and cursor.fetchone():
                print(f"only the first {limit:,} rows are shown; give --rows for more", file=sys.stderr)

    def prompt(self, lines: TextIO) -> None:
        """Answer statements until the input ends. After a statement that fails, a terminal continues and a script stops."""
        is_terminal = lines.isatty()
        if is_terminal:
            print(_GREETING, file=sys.stderr)
        pending = ""
        while line := _read_line(lines, is_terminal, bool(pending)):
            pending += line
            if not pending.rstrip().endswith(";"):
                continue
            try:
                self.answer(pending)
            except GpureportError as error:
                if not is_terminal:
                    raise
                print(error, file=sys.stderr)
            pending = ""
        if pending.strip():
            self.answer(pending)


def _without_texts(statement: str) -> str:
    """Return a statement without strings and comments."""
    data, texts = statement.encode(), (duckdb.token_type.string_const, duckdb.token_type.comment)
    ends = [*duckdb.tokenize(statement), (len(data), texts[0])]
    return " ".join(data[start:end].decode() for (start, kind), (end, _) in pairwise(ends) if kind not in texts)


def confine(con: duckdb.DuckDBPyConnection, folders: Iterable[Path]) -> None:
    """Let a database use only files of these folders and of its temporary folder. The settings are locked; no log is written."""
    [(temporary,)] = con.execute("select current_setting('temp_directory')").fetchall()
    allowed = ", ".join(quoted(path) for each in (*folders, Path(temporary)) for path in (each, each.resolve()))
    con.execute(f"set allowed_directories = [{allowed}]; set enable_external_access = false; set lock_configuration = true")


def _describe_tables() -> list[tuple[str, str]]:
    """Return every table that a statement may name, with the first sentence of its description."""
    texts = {**{f"lake.{table.name}": table.doc for table in TABLES}, **{name: query.purpose for name, query in load().items()}}
    return [
        (name, text.partition(".")[0]) for name, text in sorted(texts.items()) if name.startswith(("lake.", "facts.", "report."))
    ]


def _meanings(schema: str, table: str) -> Mapping[str, str]:
    """Return the meaning of each column of a table, with its unit, and of the columns from folder names."""
    is_raw = schema.lower() == "lake"
    columns = TABLE_BY_NAME[table.lower()].columns if is_raw else ()
    meanings = {each.name: each.doc for each in columns} if is_raw else load()[f"{schema}.{table}".lower()].columns
    return {"cluster": "cluster name", "date": "UTC day of the rows", **meanings}


def _read_line(lines: TextIO, is_terminal: bool, is_continued: bool) -> str:
    if not is_terminal:
        return lines.readline()
    import readline  # noqa: F401 - gives input() its history and line editing

    try:
        return input("   ...> " if is_continued else "gpureport> ") + "\n"
    except EOFError:
        return ""


_SERIALIZED = re.compile(r'"schema_name":"(lake|facts|period|previous|report)","table_name":"(\w+)"', re.IGNORECASE)
_PRICED = {"report.cost", "report.focus", "report.team_budget", "report.team_cost"}
_WORDS = re.compile(r"""\b(lake|facts|period|previous|report)"?\."?(\w+)""", re.IGNORECASE)


def sql(
    config: Config,
    statement: str | None,
    output: Output,
    window: Window | None,
    now: datetime,
    rows_at_most: int | None,
    allow_files: bool = False,
) -> None:
    """Print the rows of one statement, or open a prompt; tables are opened and built when statements name them.

    Without a window, report.* covers all days with facts up to now, and other tables cover the whole lake.
    Files other than the lake's can be neither read nor written, unless ``allow_files`` is set.
    """
    lake = reported_lake(config)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        if not allow_files:
            confine(con, [lake.path, QUERIES])
        session = Session(con, Tables(con, config, lake, window, now).open_named, output, sys.stdout, rows_at_most, allow_files)
        if statement:
            session.answer(statement)
        else:
            session.prompt(sys.stdin)


@dataclass
class Tables:
    """Tables of a lake in a database: views over its files, and tables built from the facts of a window."""

    con: DuckDBPyConnection
    config: Config
    lake: Lake
    given: Window | None
    now: datetime
    opened: set[str] = field(default_factory=set)

    def open_named(self, statement: str) -> None:
        """Open or build the tables that a statement names, if they are not open yet."""
        named = _tables_named(self.con, statement) - self.opened
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
            self.window_tables.build(made)
            for table in [] if "gpu_hour" in report_settings(self.config).prices else sorted(_PRICED.intersection(made)):
                print(f"{table} has no cost of GPU-hours: configure gpu_hour and currency under [prices]", file=sys.stderr)
            kept = sorted(self.opened.intersection(facts).union(kept))  # some were opened before, over all days
        files = [*(table.removeprefix("lake.") for table in lake), *(table.replace(".", "/") for table in kept)]
        views(self.con, self.lake, files, dates=None if self.given is None else list(self.given.days()))
        self.opened.update(lake, kept, made)

    @cached_property
    def window_tables(self) -> WindowTables:
        """Tables of the window; UsageError where it cuts hours."""
        from gpureport.commands.work.reporting import refuse_cut_hours

        window = (self.given or self._whole()).over_by(self.now)
        refuse_cut_hours(self.con, self.lake, window)
        return WindowTables(self.con, self.lake, window, report_settings(self.config), facts_made_with(self.config))

    def _whole(self) -> Window:
        """Return the window of all days with facts."""
        days: list[date] = [each.date for each in self.lake.computed_days()]
        if not days:
            raise LakeError(f"the lake at {self.lake} has no facts yet; run 'gpureport compute --since DAY --until today'")
        return Window(day_start(min(days)), day_start(max(days)) + timedelta(days=1))


def _tables_named(con: DuckDBPyConnection, statement: str) -> set[str]:
    """Return the lake's tables that a statement names, by DuckDB's parser; by its words if it is not a query."""
    [(serialized,)] = con.execute("select json_serialize_sql($sql)::varchar", {"sql": statement}).fetchall()
    is_no_query = '"error_type":"not implemented"' in serialized[:60]
    pattern, text = (_WORDS, statement) if is_no_query else (_SERIALIZED, serialized)
    return {f"{schema}.{table}".lower() for schema, table in pattern.findall(text)}


def top(config: Config, what: str, window: Window, output: Output, count: int) -> None:
    """Print the largest teams or workloads, or the GPUs with findings first."""
    from gpureport.report.page import own_grids

    with connection(config.compute.memory_limit, config.compute.threads) as con:
        tables = Tables(con, config, reported_lake(config), window, window.end_at).window_tables
        tables.build([*own_grids.TOP_TABLES, "period.price", "period.workload"])
        print(window, file=sys.stderr)
        print_rows(*own_grids.top(con, what, window.seconds / 3600, count), output, sys.stdout)
