"""Report: the report.* tables of an open database → report.html, summary.md, csv/, tables/, report.json, gpureport.duckdb.

Files are written aside and moved into their folder together, by one report at a time: nobody reads half of a file,
or finds a file of a previous report beside the new ones. While files of two reports may lie there,
one more file says so; where a report was killed amid the moves it stays until the next.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    """Rows and bytes of a report's files."""

    csv_rows: int = 100_000
    """Tables with more rows than this have no CSV; Parquet has them all."""
    has_facts: bool = False
    """Whether gpureport.duckdb has the hourly facts too."""
    only: Collection[str] = ()
    """html, csv, parquet, json or duckdb; all where it is empty."""

    def has(self, form: str) -> bool:
        """Whether files of this form are written."""
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

    With ``owners`` (of namespaces) also a page for each owner, in ``by/``. The database's report tables are gone then.
    Files are written aside and then moved, so that no reader meets half of one.
    """
    with aside(out) as folder:
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
                *([write_json(found, header, [*csv, *parquet], folder / "report.json")] if forms.has("json") else []),
                *([database] if forms.has("duckdb") else []),
            ]
        return Written(place(written, folder, out), pages.answers)


_SERIES, _INDEX = "series.json", "index.html"
KEPT = 400
"""Reports that the index remembers: a year of nights."""


def write_series(answers: Sequence[Answer], header: Header, previous: Path, folder: Path) -> list[Path]:
    """Write ``series.json`` and ``index.html``: what ``previous`` remembers of past reports, and this one in its place."""
    entry = {
        "clusters": list(header.clusters),
        "since": rfc3339(header.window.start_at),
        "until": rfc3339(header.window.end_at),
        "answers": {each.title: [each.headline, each.tone] for each in answers},
    }
    # Reports of other clusters are another series: also those with names, where this one has pseudonyms.
    others = [each for each in _read(previous / _SERIES) if each["clusters"] == entry["clusters"] and _key(each) != _key(entry)]
    entries = sorted([entry, *others], key=_key, reverse=True)[:KEPT]
    (folder / _SERIES).write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = environment().get_template("index.html.j2").render(entries=entries, newest=_key(entry), key=_key, style=stylesheet())
    (folder / _INDEX).write_text(page, encoding="utf-8")
    return [folder / _INDEX, folder / _SERIES]


def _key(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["until"], entry["since"], ", ".join(entry["clusters"])


def _read(path: Path) -> list[dict[str, Any]]:
    """Past reports; none where the file is not there or is somebody else's."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [each for each in found if _key(each) and each["answers"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


NOTICE = "FILES-OF-TWO-REPORTS.txt"
_ASIDE = ".writing"
_FORMS = ("report.html", "report.json", "gpureport.duckdb")
_FORMER = ("gpu_hour_course",)
"""Tables by the names that older versions gave them."""
_NOTICED = (
    "The files here may be from two reports: one is being moved here, or was killed during the move. If none is running, write "
    "the report again.\n"
)


@contextmanager
def aside(out: Path) -> Iterator[Path]:
    """An empty folder within ``out``, gone when the block ends; what a report that was killed left there is removed first.

    Another report that writes into the same folder is waited for.
    """
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        for left in out.glob(f"{_ASIDE}*"):
            shutil.rmtree(left)
        folder = out / _ASIDE
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def place(written: Sequence[Path], folder: Path, out: Path) -> list[Path]:
    """Move the files into ``out``, the first of them last, for it leads to the others; their new paths in the given order.

    Tables and pages that a previous report had and this one has not are removed: nobody is to take them for this one's.
    Until all of that is done ``NOTICE`` lies beside them.
    """
    (out / NOTICE).write_text(_NOTICED, encoding="utf-8")
    placed = [out / path.relative_to(folder) for path in written]
    for path, target in reversed(list(zip(written, placed, strict=True))):
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    for stale in _of_previous(out) - set(placed):
        stale.unlink()
        if not any(stale.parent.iterdir()):
            stale.parent.rmdir()
    (out / NOTICE).unlink(missing_ok=True)
    return placed


def _of_previous(out: Path) -> set[Path]:
    """The forms and pages that a report may lack, and tables by the names that it knows; other files are somebody's."""
    tables = {*_FORMER, *(table.removeprefix("report.") for table in load())}
    found = (path for name in ("csv/*.csv", "tables/*.parquet") for path in out.glob(name))
    forms = {path for name in _FORMS if (path := out / name).is_file()}
    return {*forms, *out.glob("by/*.html"), *(path for path in found if path.stem in tables)}


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the lock on the folder itself."""
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
