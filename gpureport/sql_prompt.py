"""``gpureport sql``: DuckDB over lake.*, facts.* and report.*, for one statement or at a prompt."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, TextIO

import duckdb
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpureport.errors import UsageError
from gpureport.window import rfc3339

Output = Literal["table", "json", "csv"]
_GREETING = "DuckDB over lake.*, facts.* and report.*; end a statement with ';', leave with Ctrl-D. Tables: show all tables;"


def answer(con: duckdb.DuckDBPyConnection, statement: str, output: Output, out: TextIO) -> None:
    """Run one statement and print its rows, if it has any to give; UsageError, with DuckDB's words, for one that it refuses."""
    try:
        cursor = con.execute(statement)
        names = [column[0] for column in cursor.description or []]
        rows = [[_plain(found) for found in row] for row in cursor.fetchall()] if names else []
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_lines(error)}") from None
    if names:
        _PRINTERS[output](names, rows, out)


def prompt(con: duckdb.DuckDBPyConnection, output: Output, lines: TextIO, out: TextIO) -> None:
    """Read statements until the input ends. At a terminal a refused one is reported and the prompt goes on; a script stops."""
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
            if not is_terminal:
                raise
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


def _plain(found: Any) -> Any:
    """A value as JSON has it: instants RFC 3339 (the tables hold UTC), exact decimals as numbers, not-a-number as null."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, datetime):
        return rfc3339(found if found.tzinfo else found.replace(tzinfo=UTC))
    if isinstance(found, Decimal):
        return int(found) if found == found.to_integral_value() else float(found)
    if isinstance(found, list | tuple):
        return [_plain(each) for each in found]
    if isinstance(found, dict):
        return {str(key): _plain(each) for key, each in found.items()}
    return found if found is None or isinstance(found, bool | int | str) else str(found)


def _text(found: Any) -> str:
    """A value in a cell; lists and maps as JSON."""
    return json.dumps(found, ensure_ascii=False) if isinstance(found, list | dict | bool) else str(found)


def _print_table(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    numbers = [any(isinstance(row[column], int | float) for row in rows) for column in range(len(names))]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, is_number in zip(names, numbers, strict=True):
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("—" if found is None else _text(found)) for found in row))
    width = None if out.isatty() else 10_000
    Console(file=out, width=width, highlight=False, markup=False).print(table)


def _print_json(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    json.dump([dict(zip(names, row, strict=True)) for row in rows], out, indent=1, ensure_ascii=False, allow_nan=False)
    out.write("\n")


def _print_csv(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(["" if found is None else _text(found) for found in row] for row in rows)


_PRINTERS = {"table": _print_table, "json": _print_json, "csv": _print_csv}
