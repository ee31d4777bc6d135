"""``gpureport sql``: DuckDB over lake.*, facts.* and report.*, for one statement or at a prompt."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import duckdb

from gpureport.compute.query import load
from gpureport.values.errors import GpureportError, UsageError, first_line
from gpureport.values.tables import TABLE_BY_NAME, TABLES
from gpureport.values.text.rows import Output, print_rows

_GREETING = "DuckDB over lake.*, facts.* and report.*; end a statement with ';', leave with Ctrl-D. Tables: show tables;"
_SHOW_TABLES = re.compile(r"\s*(show\s+(all\s+)?tables|describe)\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(r"""\s*desc(?:ribe)?\s+"?(lake|facts|report)"?\."?(\w+)"?\s*;?\s*""", re.IGNORECASE)
_ON_TERMINAL = 1000
_WRITING = re.compile(r'\b(copy|export|import|attach)\b|\b(query|json_execute_serialized_sql)"?\s*\(', re.IGNORECASE)
"""Statements that write files, also within another statement, or run a text that might."""


@dataclass(frozen=True)
class Session:
    """A database whose tables are made as statements name them, and where rows are printed."""

    con: duckdb.DuckDBPyConnection
    prepare: Callable[[str], None]
    """Told of each statement before it runs."""
    output: Output
    out: TextIO
    rows_at_most: int | None = None
    """None: 1,000 in a table, all as CSV and JSON."""
    may_write: bool = False
    """Whether statements may write files."""

    def answer(self, statement: str) -> None:
        """Run one statement and print its rows as they come; UsageError, in DuckDB's words, for one that it refuses."""
        if _SHOW_TABLES.fullmatch(statement):
            return print_rows(["table", "holds"], _tables(), self.output, self.out)
        limit = _ON_TERMINAL if self.rows_at_most is None and self.output == "table" else self.rows_at_most
        try:
            self._refuse_writing(statement)
            self.prepare(statement)
            cursor = self.con.execute(statement)
            if described := _DESCRIBE.fullmatch(statement):
                meanings = _meanings(*described.groups())
                rows = [(name, kind, meanings.get(name, "")) for name, kind, *_ in cursor.fetchall()]
                print_rows(["column", "type", "meaning"], rows, self.output, self.out)
            elif names := [column[0] for column in cursor.description or ()]:
                print_rows(names, iter(cursor.fetchone, None), self.output, self.out, limit)
                if limit is not None and cursor.fetchone():
                    print(f"only the first {limit:,} rows are shown; give --rows for more", file=sys.stderr)
        except duckdb.Error as error:
            hint = "; give --allow-files to read other files" if isinstance(error, duckdb.PermissionException) else ""
            close = next((f" {line}" for line in str(error).splitlines() if line.startswith("Candidate bindings")), "")
            raise UsageError(f"SQL: {first_line(error)}{close}{hint}") from None

    def _refuse_writing(self, statement: str) -> None:
        if not self.may_write and _WRITING.search(_without_texts(statement)):
            raise UsageError("SQL: gpureport sql only reads; give --allow-files to write files")

    def prompt(self, lines: TextIO) -> None:
        """Answer statements until the input ends. At a terminal the prompt goes on after one that fails; a script stops."""
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
    """A statement's words and signs, without strings and comments."""
    data, texts = statement.encode(), (duckdb.token_type.string_const, duckdb.token_type.comment)
    ends = [*duckdb.tokenize(statement), (len(data), texts[0])]
    return " ".join(data[start:end].decode() for (start, kind), (end, _) in pairwise(ends) if kind not in texts)


def confine(con: duckdb.DuckDBPyConnection, folders: Iterable[Path]) -> None:
    """Let a database use files of these folders, and of its own temporary one, alone; it stays so, and writes no log."""
    [(temporary,)] = con.execute("select current_setting('temp_directory')").fetchall()
    paths = (str(path).replace("'", "''") for each in (*folders, Path(temporary)) for path in (each, each.resolve()))
    allowed = ", ".join(f"'{path}'" for path in paths)
    con.execute(f"set allowed_directories = [{allowed}]; set enable_external_access = false; set lock_configuration = true")


def _tables() -> list[tuple[str, str]]:
    """Every table that a statement may name, and the first sentence on it."""
    told = {**{f"lake.{table.name}": table.doc for table in TABLES}, **{name: query.purpose for name, query in load().items()}}
    return [
        (name, text.partition(".")[0]) for name, text in sorted(told.items()) if name.startswith(("lake.", "facts.", "report."))
    ]


def _meanings(schema: str, table: str) -> Mapping[str, str]:
    """Meaning of each column of a table, unit included, and of the columns that folders add."""
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
