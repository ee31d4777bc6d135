"""Report: the report.* tables of an open database → report.html, summary.md, csv/, report.json, gpureport.duckdb."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from gpureport.query import Query
from gpureport.report.csv_files import write_csv
from gpureport.report.database import write_database
from gpureport.report.first_screen import first_screen
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.json_file import write_json
from gpureport.report.owner_pages import FOLDER, Namespace, write_owner_pages
from gpureport.report.results import read_results
from gpureport.report.summary import write_summary


def write_report(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    out: Path,
    owners: Mapping[Namespace, str] | None = None,
) -> list[Path]:
    """Write every form of the report into a folder; the files, the page first. Figures are rounded once, for all of them.

    With ``owners`` (of namespaces) also a page for each owner, in ``by/``; those of an earlier report are removed.
    Files are written aside and then moved, so that nobody who looks meanwhile reads half of one.
    """
    out.mkdir(parents=True, exist_ok=True)
    results = read_results(con, queries)
    first = first_screen({result.name: result for result in results}, header)
    with TemporaryDirectory(dir=out, prefix=".writing-") as folder:
        aside = Path(folder)
        pages = write_owner_pages(con, results, header, owners, aside / FOLDER) if owners is not None else {}
        links = [(owner or "without an owner", f"{FOLDER}/{page.name}") for owner, page in pages.items()]
        written = [
            write_html(con, results, header, first, aside / "report.html", links),
            *pages.values(),
            write_summary(first, header, aside / "summary.md"),
            *write_csv(results, aside / "csv"),
            write_json(results, header, aside / "report.json"),
            write_database(con, results, header, aside / "gpureport.duckdb"),
        ]
        shutil.rmtree(out / FOLDER, ignore_errors=True)
        return [_moved(path, out / path.relative_to(aside)) for path in written]


def _moved(path: Path, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    return path.replace(target)
