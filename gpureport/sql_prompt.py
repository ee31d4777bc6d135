"""``gpureport sql``: DuckDB over lake.*, facts.* and report.*, for one statement or at a prompt."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal, TextIO

import duckdb
from rich.console import Console
from rich.table import Table

from gpureport.errors import UsageError

Output = Literal["table", "json", "csv"]
_GREETING = "DuckDB over lake.*, facts.* and report.*; end a statement with ';', leave with Ctrl-D. Tables: show all tables;"


def answer(con: duckdb.DuckDBPyConnection, statement: str, output: Output, out: TextIO) -> None:
    """Run one statement and print its rows; UsageError, with DuckDB's words, for one that DuckDB refuses."""
    try:
        cursor = con.execute(statement)
        names = [column[0] for column in cursor.description or []]
        rows = cursor.fetchall()
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    _PRINTERS[output](names, rows, out)


def prompt(con: duckdb.DuckDBPyConnection, output: Output, lines: TextIO, out: TextIO) -> None:
    """Read statements until the input ends; a refused one is reported and the prompt goes on."""
    is_terminal = lines.isatty()
    if is_terminal:
        print(_GREETING, file=sys.stderr)
    pending = ""
    while line := _read_line(lines, is_terminal, bool(pending)):
        pending += line
        if not pending.rstrip().endswith(";"):
            continue
        try:
            answer(con, pending, output, out)
        except UsageError as error:
            print(error, file=sys.stderr)
        pending = ""
    if pending.strip():
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


def _print_table(names: Sequence[str], rows: Sequence[tuple[Any, ...]], out: TextIO) -> None:
    table = Table(*names, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*("—" if found is None else str(found) for found in row))
    width = None if out.isatty() else 10_000
    Console(file=out, width=width, highlight=False, markup=False).print(table)


def _print_json(names: Sequence[str], rows: Sequence[tuple[Any, ...]], out: TextIO) -> None:
    json.dump([dict(zip(names, row, strict=True)) for row in rows], out, default=str, indent=1, ensure_ascii=False)
    out.write("\n")


def _print_csv(names: Sequence[str], rows: Sequence[tuple[Any, ...]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)


_PRINTERS = {"table": _print_table, "json": _print_json, "csv": _print_csv}
