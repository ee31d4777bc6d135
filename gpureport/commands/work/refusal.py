"""Errors of the disk while a report is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from gpureport.values.errors import OutputError, first_line


@contextmanager
def out_errors(out: Path, instead: str = "give another --out") -> Iterator[None]:
    """Error of the disk as one sentence; DuckDB and Python have their own texts."""
    if out.is_file():
        raise OutputError(f"{out} is a file; give a folder with --out")
    try:
        yield
    except (OSError, duckdb.IOException, duckdb.FatalException, duckdb.TransactionException) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise OutputError(f"{out} cannot be written ({reason}); free space, or {instead}") from error
