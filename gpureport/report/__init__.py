"""Report: the report.* tables of an open database → report.html, csv/, report.json, gpureport.duckdb."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from gpureport.query import Query
from gpureport.report.csv_files import write_csv
from gpureport.report.database import write_database
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.json_file import write_json
from gpureport.report.results import read_results


def write_report(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], header: Header, out: Path) -> list[Path]:
    """Write every form of the report into a folder; the files, the page first. Figures are rounded once, for all of them.

    Files are written aside and then moved, so that nobody who looks meanwhile reads half of one.
    """
    out.mkdir(parents=True, exist_ok=True)
    results = read_results(con, queries)
    with TemporaryDirectory(dir=out, prefix=".writing-") as folder:
        aside = Path(folder)
        written = [
            write_html(con, results, header, aside / "report.html"),
            *write_csv(results, aside / "csv"),
            write_json(results, header, aside / "report.json"),
            write_database(con, results, header, aside / "gpureport.duckdb"),
        ]
        return [_moved(path, out / path.relative_to(aside)) for path in written]


def _moved(path: Path, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    return path.replace(target)
