"""Report: the report.* tables of an open database → report.html, summary.md, csv/, tables/, report.json, gpureport.duckdb."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from gpureport.compute.query import Query
from gpureport.report.csv_files import write_csv, write_parquet
from gpureport.report.database import finished
from gpureport.report.header import Header
from gpureport.report.json_file import write_json, write_summary
from gpureport.report.page import write_pages
from gpureport.report.page.tables import Namespace
from gpureport.report.publishing import aside, place, write_series


@dataclass(frozen=True)
class Forms:
    """Rows and bytes of a report's files."""

    has_facts: bool = False
    """Whether gpureport.duckdb has the hourly facts too."""
    only: Collection[str] = ()
    """html, csv, parquet, json or duckdb; all where it is empty."""

    def has(self, form: str) -> bool:
        """Whether files of this form are written."""
        return not self.only or form in self.only


@dataclass(frozen=True)
class Written:
    """A report's files, the page first, and its answers, a line each."""

    files: list[Path]
    answers: tuple[str, ...]


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
        with finished(con, queries, header, database, forms.has_facts) as found:
            pages = write_pages(con, queries, header, folder, owners)
            csv = write_csv(found, folder / "csv") if forms.has("csv") else []
            parquet = write_parquet(found, folder / "tables") if forms.has("parquet") else []
            written = [
                *(pages.files if forms.has("html") else []),
                write_summary(pages.answers, header, folder / "summary.md"),
                *(write_series(pages.answers, header, out, folder) if forms.has("html") else []),
                *csv,
                *parquet,
                *([write_json(found, header, [*csv, *parquet], folder / "report.json")] if forms.has("json") else []),
                *([database] if forms.has("duckdb") else []),
            ]
        return Written(place(written, folder, out), tuple(each.line for each in pages.answers))
