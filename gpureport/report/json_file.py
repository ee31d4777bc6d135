"""report.json: the header, every table, and the containers in OpenCost's and cAdvisor's shapes.

Written row by row: the document of a large cluster is a quarter of a gigabyte, and several times that as objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gpureport.report.allocation import accelerators, allocations
from gpureport.report.header import Header
from gpureport.report.results import Result

SCHEMA_VERSION = 1
_INSTANTS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
"""Instants are UTC without a zone in SQL; in JSON they say so."""


def write_json(results: Sequence[Result], header: Header, path: Path) -> Path:
    """Write the file; keys in a fixed order, no clock in it."""
    by_name = {result.name: result for result in results}
    saturation, accelerator = by_name.get("container_saturation"), by_name.get("accelerator")
    with path.open("wb") as file:
        file.write(_text({"schema_version": SCHEMA_VERSION, **header.as_dict()}).removesuffix(b"\n}"))
        _write_list(file, b',\n  "allocations": ', allocations(saturation.anew()) if saturation else (), b"  ")
        _write_list(file, b',\n  "containers": ', accelerators(accelerator.anew()) if accelerator else (), b"  ")
        file.write(b',\n  "tables": {')
        for number, result in enumerate(results):
            _write_list(file, (b",\n    " if number else b"\n    ") + _text(result.name) + b": ", _rows(result.anew()), b"    ")
        file.write(b"\n  }\n}\n")
    return path


def _write_list(file: BinaryIO, name: bytes, entries: Iterable[dict[str, Any]], indent: bytes) -> None:
    """A list under its name, an entry at a time, as one call for the whole document would write it."""
    file.write(name + b"[")
    line = b"\n" + indent + b"  "
    is_empty = True
    for entry in entries:
        file.write((line if is_empty else b"," + line) + _text(entry).replace(b"\n", line))
        is_empty = False
    file.write(b"]" if is_empty else b"\n" + indent + b"]")


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | _INSTANTS)


def _rows(result: Result) -> Iterator[dict[str, Any]]:
    return ({**row, **result.maps_of(number)} for number, row in enumerate(result.rows.iter_rows(named=True)))
