"""Rows on standard output as a table, Markdown, JSON or CSV, all with the same content."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import accumulate, chain, islice
from textwrap import wrap
from typing import Any, Literal, TextIO

from gpureport.values.text.safe import csv_cell, printable, to_json
from gpureport.values.window import rfc3339

_CELL_MAX = 48
"""Maximum characters of a cell on a terminal."""
Output = Literal["table", "wide", "md", "json", "csv"]
"""Table fitted to the terminal, table of full width, Markdown, JSON or CSV."""


def print_rows(
    names: Sequence[str], rows: Iterable[Sequence[Any]], output: Output, out: TextIO, at_most: int | None = None
) -> None:
    """Print rows under their column names, CSV and JSON row by row. ``plain`` converts the values."""
    _PRINTERS[output](names, ([plain(found) for found in row] for row in islice(rows, at_most)), out)


def plain(found: Any) -> Any:
    """Return a value for JSON: times in RFC 3339 (tables have UTC), decimals as numbers, NaN and infinity as null."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, datetime):
        return rfc3339(found if found.tzinfo else found.replace(tzinfo=UTC))
    if isinstance(found, Decimal):
        return int(found) if found == found.to_integral_value() else float(found)
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, dict):
        return {str(key): plain(each) for key, each in found.items()}
    return found if found is None or isinstance(found, bool | int | str) else str(found)


def _text(found: Any) -> str:
    """Return a cell's text. Lists and maps are JSON."""
    return json.dumps(found, ensure_ascii=False) if isinstance(found, list | dict | bool) else str(found)


def _line(found: Any) -> str:
    return printable(_text(found)).replace("\n", " ")


def _cell(found: Any) -> str:
    return csv_cell(found) if isinstance(found, str) else _text(found)


def _quoted(cell: str) -> str:
    """Quote a CSV cell. The standard library does not quote a lone carriage return, where readers would end the row."""
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if any(mark in cell for mark in ',"\r\n') else cell


def _print_table(names: Sequence[str], found: Iterator[Sequence[Any]], out: TextIO, is_wide: bool = False) -> None:
    """Print aligned columns. On a terminal, names are wrapped, long cells cut, and columns that do not fit left out."""
    from rich.cells import cell_len, set_cell_size  # imported on use: it slows a command's start

    rows, is_cut = list(found), out.isatty() and not is_wide
    most, terminal_width = (_CELL_MAX, shutil.get_terminal_size().columns) if is_cut else (sys.maxsize, sys.maxsize)
    heads = [wrap(name.replace("_", " "), 12, break_long_words=False) if is_cut else [name] for name in names]
    above = max(map(len, heads), default=0)
    columns = []
    for at, head in enumerate(heads):
        texts = ["—" if row[at] is None else _line(row[at]) for row in rows]
        cut = (text if cell_len(text) <= most else f"{set_cell_size(text, most - 1)}…" for text in texts)
        columns.append([*[""] * (above - len(head)), *(each.replace(" ", "_") for each in head), *cut])
    widths = [max(map(cell_len, column)) for column in columns]
    shown = max(1, sum(1 for end in accumulate(width + 2 for width in widths) if end - 2 <= terminal_width))
    is_number = [any(isinstance(row[at], int | float) for row in rows) for at in range(shown)]
    for line in zip(*columns[:shown], strict=True):
        sized = zip(line, widths, is_number, strict=False)
        texts = [" " * (width - cell_len(text)) + text if right else set_cell_size(text, width) for text, width, right in sized]
        out.write("  ".join(texts).rstrip() + "\n")
    if shown < len(names):
        print(f"{shown} of {len(names)} columns fit; give -o wide, md, csv or json for all", file=sys.stderr)


def _print_markdown(names: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    for cells in chain([names, ["---"] * len(names)], rows):
        texts = ("—" if cell is None else _line(cell).replace("\\", r"\\").replace("|", r"\|") for cell in cells)
        out.write(f"| {' | '.join(texts)} |\n")


def _print_json(names: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    before = "[\n"
    for row in rows:
        text = to_json(dict(zip(names, row, strict=True)), indent=1)
        out.write(f"{before} {text.replace(chr(10), chr(10) + ' ')}")
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")


def _print_csv(names: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    for cells in chain([names], (["" if found is None else _cell(found) for found in row] for row in rows)):
        out.write(",".join(map(_quoted, cells)) + "\n")


_PRINTERS: dict[Output, Callable[[Sequence[str], Iterator[Sequence[Any]], TextIO], None]] = {
    "table": _print_table,
    "wide": partial(_print_table, is_wide=True),
    "md": _print_markdown,
    "json": _print_json,
    "csv": _print_csv,
}
