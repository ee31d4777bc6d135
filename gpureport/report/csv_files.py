"""One CSV per report table: raw units, SQL's column names, empty for unknown, maps (its reasons among them) as JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import orjson
import polars as pl

from gpureport.report.results import Result
from gpureport.window import rfc3339

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ROWS_AT_ONCE = 2048


def write_csv(results: Iterable[Result], folder: Path) -> list[Path]:
    """Write ``<folder>/<table>.csv`` for each (RFC 4180, UTF-8, line feeds); the files, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in results:
        path = folder / f"{result.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            _write(result.anew(), file)
        written.append(path)
    return written


def _write(result: Result, file: TextIO) -> None:
    """The table as CSV text, some rows at a time: numbers, which most columns are, go by unlooked at."""
    writer, rows = csv.writer(file, lineterminator="\n"), result.rows
    writer.writerow([*rows.columns, *result.maps])
    maps = [_texts(found) for found in result.maps.values()]
    for part in rows.iter_slices(_ROWS_AT_ONCE):
        writer.writerows(zip(*map(_cells, part), *(islice(texts, part.height) for texts in maps), strict=True))


def _cells(column: pl.Series) -> list[Any]:
    found = column.to_list()
    return found if column.dtype.is_numeric() else list(map(cell, found))


def _texts(maps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Each map as JSON; equal ones are one object, whose text is made once."""
    texts: dict[int, str] = {}
    for found in maps:
        if id(found) not in texts:
            texts[id(found)] = orjson.dumps(found).decode()
        yield texts[id(found)]


def cell(found: Any) -> Any:
    """A value as CSV holds it: null is empty, a list is separated by spaces, an instant is RFC 3339."""
    if isinstance(found, datetime):
        return rfc3339(found.replace(tzinfo=UTC))
    if isinstance(found, list):
        return " ".join(map(str, found))
    return inert(found) if isinstance(found, str) else found


def inert(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe stands before what would begin one."""
    return f"'{text}" if text.startswith(_FORMULA) else text
