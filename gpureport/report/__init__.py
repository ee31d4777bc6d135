"""Report: the report.* tables of an open database → report.html, summary.md, csv/, tables/, report.json, gpureport.duckdb.

Files are written into a temporary folder and then moved together, by one report at a time. So no reader sees half of a file, or
finds a file of a previous report beside the new ones. During the moves a notice file says that files may be of two reports.
It stays until the next report if this one is killed during the moves.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from gpureport.compute.query import Query, load
from gpureport.report.database import finished
from gpureport.report.header import Header
from gpureport.report.json_file import write_json, write_summary
from gpureport.report.page import Written, write_pages
from gpureport.report.page.answers import Answer
from gpureport.report.page.embedded import environment, stylesheet
from gpureport.report.page.tables import Namespace
from gpureport.report.results import write_csv, write_parquet
from gpureport.values.window import rfc3339


@dataclass(frozen=True)
class Forms:
    """Forms of the report to write, and their limits."""

    csv_rows: int = 100_000
    """Tables with more rows than this have no CSV; Parquet has them all."""
    has_facts: bool = False
    """Whether gpureport.duckdb also has the hourly facts."""
    only: Collection[str] = ()
    """Forms to write: html, csv, parquet, json, duckdb; all if empty."""

    def has(self, form: str) -> bool:
        """Return whether files of this form are written."""
        return not self.only or form in self.only


def write_report(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    out: Path,
    owners: Mapping[Namespace, str] | None = None,
    forms: Forms = Forms(),
) -> Written:
    """Write every form of the report into a folder. Figures are rounded once, for all files.

    With ``owners`` (of namespaces), also write a page for each owner in ``by/``. The database's report tables are then dropped.
    Files are moved only when all are written, so that no reader sees half of one.
    """
    with staging_folder(out) as folder:
        database = folder / "gpureport.duckdb"
        with finished(con, queries, header, database, forms.has_facts, forms.has("duckdb")) as found:
            pages = write_pages(con, queries, header, folder, owners, forms.has("html"))
            csv = write_csv(found, folder / "csv", forms.csv_rows) if forms.has("csv") else []
            parquet = write_parquet(found, folder / "tables") if forms.has("parquet") else []
            whole = {"csv/": csv and len(csv) == len(found), "tables/": parquet, "gpureport.duckdb": forms.has("duckdb")}
            written = [
                *pages.files,
                write_summary(pages.answers, header, [name for name, has_all in whole.items() if has_all], folder / "summary.md"),
                *(write_series(pages.answers, header, out, folder) if forms.has("html") else []),
                *csv,
                *parquet,
                *([write_json(found, header, pages, [*csv, *parquet], folder / "report.json")] if forms.has("json") else []),
                *([database] if forms.has("duckdb") else []),
            ]
        return replace(pages, files=place(written, folder, out))


_SERIES, _INDEX = "series.json", "index.html"
SERIES_MAX = 400
"""Largest number of reports in the index: a year of nights."""


def write_series(answers: Sequence[Answer], header: Header, previous: Path, folder: Path) -> list[Path]:
    """Write ``series.json`` and ``index.html``: the past reports listed in ``previous``, and this report added or replaced."""
    entry = {
        "clusters": list(header.clusters),
        "since": rfc3339(header.window.start_at),
        "until": rfc3339(header.window.end_at),
        "answers": {each.title: [each.headline, each.tone] for each in answers},
    }
    # Only reports of the same clusters are one series; cluster names and pseudonyms count as different.
    others = [each for each in _read(previous / _SERIES) if each["clusters"] == entry["clusters"] and _key(each) != _key(entry)]
    entries = sorted([entry, *others], key=_key, reverse=True)[:SERIES_MAX]
    (folder / _SERIES).write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = environment().get_template("index.html.j2").render(entries=entries, newest=_key(entry), key=_key, style=stylesheet())
    (folder / _INDEX).write_text(page, encoding="utf-8")
    return [folder / _INDEX, folder / _SERIES]


def _key(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["until"], entry["since"], ", ".join(entry["clusters"])


def _read(path: Path) -> list[dict[str, Any]]:
    """Return past reports; none where the file is missing or has another format."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [each for each in found if _key(each) and each["answers"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


NOTICE = "FILES-OF-TWO-REPORTS.txt"
_STAGING = ".writing"
_FORMS = ("report.html", "report.json", "gpureport.duckdb")
_NOTICE_TEXT = "Files here may be from two reports: a report is being moved here. If its move was interrupted, write it again.\n"


@contextmanager
def staging_folder(out: Path) -> Iterator[Path]:
    """Create an empty folder in ``out`` and remove it when the block ends. First remove such a folder of a killed report.

    Wait for any other report that writes into the same folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    with _folder_lock(out):
        for left in out.glob(f"{_STAGING}*"):
            shutil.rmtree(left)
        folder = out / _STAGING
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def place(written: Sequence[Path], folder: Path, out: Path) -> list[Path]:
    """Move the files into ``out``, the first file last because it links to the others. Return their new paths in the given order.

    Tables and pages of a previous report that this one lacks are removed, so that no reader takes them for new ones.
    The file ``NOTICE`` exists until all of that is done.
    """
    (out / NOTICE).write_text(_NOTICE_TEXT, encoding="utf-8")
    placed = [out / path.relative_to(folder) for path in written]
    for path, target in reversed(list(zip(written, placed, strict=True))):
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    for stale in _previous_files(out) - set(placed):
        stale.unlink()
        if not any(stale.parent.iterdir()):
            stale.parent.rmdir()
    (out / NOTICE).unlink(missing_ok=True)
    return placed


def _previous_files(out: Path) -> set[Path]:
    """Return files of the previous report that a new one may lack: forms, pages and known tables; no other files."""
    tables = {table.removeprefix("report.") for table in load()}
    found = (path for name in ("csv/*.csv", "tables/*.parquet") for path in out.glob(name))
    forms = {path for name in _FORMS if (path := out / name).is_file()}
    return {*forms, *out.glob("by/*.html"), *(path for path in found if path.stem in tables)}


@contextmanager
def _folder_lock(out: Path) -> Iterator[None]:
    """Hold the lock on the folder itself."""
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
