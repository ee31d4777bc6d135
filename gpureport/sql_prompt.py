"""``gpureport sql``: DuckDB over lake.*, facts.* and report.*, for one statement or at a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

import duckdb

from gpureport.errors import UsageError
from gpureport.row_printing import Output, print_rows

_GREETING = "DuckDB over lake.*, facts.* and report.*; end a statement with ';', leave with Ctrl-D. Tables: show all tables;"


def answer(con: duckdb.DuckDBPyConnection, statement: str, output: Output, out: TextIO) -> None:
    """Run one statement and print its rows, if it has any to give; UsageError, with DuckDB's words, for one that it refuses."""
    try:
        cursor = con.execute(statement)
        names = [column[0] for column in cursor.description or []]
        rows = cursor.fetchall() if names else []
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    if names:
        print_rows(names, rows, output, out)


def prompt(
    con: duckdb.DuckDBPyConnection, output: Output, lines: TextIO, out: TextIO, prepare: Callable[[str], None] = lambda _: None
) -> None:
    """Read statements until the input ends; ``prepare`` is told of each before it runs.

    At a terminal a refused one is reported and the prompt goes on; a script stops.
    """
    is_terminal = lines.isatty()
    if is_terminal:
        print(_GREETING, file=sys.stderr)
    pending = ""
    while line := _read_line(lines, is_terminal, bool(pending)):
        pending += line
        if not pending.rstrip().endswith(";"):
            continue
        try:
            prepare(pending)
            answer(con, pending, output, out)
        except UsageError as error:
            if not is_terminal:
                raise
            print(error, file=sys.stderr)
        pending = ""
    if pending.strip():
        prepare(pending)
        answer(con, pending, output, out)


def _read_line(lines: TextIO, is_terminal: bool, is_continued: bool) -> str:
    if not is_terminal:
        return lines.readline()
    import readline  # noqa: F401 - gives input() its history and line editing

    try:
        return input("   ...> " if is_continued else "gpureport> ") + "\n"
    except EOFError:
        return ""


def _first_lines(error: Exception) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:3] if line.strip())
