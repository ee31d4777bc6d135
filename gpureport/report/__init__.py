"""Report: the report.* tables of an open database → report.html, summary.md, csv/, tables/, report.json, gpureport.duckdb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from gpureport.query import Query
from gpureport.report.aside import aside, place
from gpureport.report.csv_files import write_csv, write_parquet
from gpureport.report.database import finished
from gpureport.report.first_screen import first_screen
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.json_file import write_json
from gpureport.report.owner_pages import FOLDER, Namespace, write_owner_pages
from gpureport.report.results import Result
from gpureport.report.summary import write_summary


@dataclass(frozen=True)
class Forms:
    """How much the files of a report hold."""

    csv_rows: int = 100_000
    """Tables with more rows than this have no CSV; Parquet has them all."""
    has_facts: bool = False
    """Whether gpureport.duckdb has the hourly facts too."""


def write_report(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    out: Path,
    owners: Mapping[Namespace, str] | None = None,
    forms: Forms = Forms(),
) -> list[Path]:
    """Write every form of the report into a folder; the files, the page first. Figures are rounded once, for all of them.

    With ``owners`` (of namespaces) also a page for each owner, in ``by/``. The database's report tables are gone then.
    Files are written aside and then moved, so that nobody who looks meanwhile reads half of one.
    """
    with aside(out) as folder:
        database = folder / "gpureport.duckdb"
        with finished(con, queries, header, database, forms.has_facts) as found:
            tables = [*write_csv(found, folder / "csv", forms.csv_rows), *write_parquet(found, folder / "tables")]
            written = [
                *_write_screens(con, [replace(result) for result in found], header, folder, owners),
                *tables,
                write_json(found, header, tables, folder / "report.json"),
                database,
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
