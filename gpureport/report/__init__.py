"""Report: the report.* tables of an open database → report.html, summary.md, csv/, report.json, gpureport.duckdb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from gpureport.query import Query
from gpureport.report.aside import aside, place
from gpureport.report.csv_files import write_csv
from gpureport.report.database import write_database
from gpureport.report.first_screen import first_screen
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.json_file import write_json
from gpureport.report.owner_pages import FOLDER, Namespace, write_owner_pages
from gpureport.report.results import Result, opened_results
from gpureport.report.summary import write_summary


def write_report(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    out: Path,
    owners: Mapping[Namespace, str] | None = None,
) -> list[Path]:
    """Write every form of the report into a folder; the files, the page first. Figures are rounded once, for all of them.

    With ``owners`` (of namespaces) also a page for each owner, in ``by/``.
    Files are written aside and then moved, so that nobody who looks meanwhile reads half of one.
    """
    with opened_results(con, queries) as found, aside(out) as folder:
        written = [
            *_write_screens(con, [result.anew() for result in found], header, folder, owners),
            *write_csv(found, folder / "csv"),
            write_json(found, header, folder / "report.json"),
            write_database(con, found, header, folder / "gpureport.duckdb"),
        ]
        return place(written, folder, out)


def _write_screens(
    con: duckdb.DuckDBPyConnection,
    results: Sequence[Result],
    header: Header,
    folder: Path,
    owners: Mapping[Namespace, str] | None,
) -> list[Path]:
    """The page, those of the owners, and the summary."""
    first = first_screen({result.name: result for result in results}, header)
    pages = write_owner_pages(con, results, header, owners, folder / FOLDER) if owners is not None else {}
    links = [(owner or "without an owner", f"{FOLDER}/{page.name}") for owner, page in pages.items()]
    return [
        write_html(con, results, header, first, folder / "report.html", links),
        *pages.values(),
        write_summary(first, header, folder / "summary.md"),
    ]
