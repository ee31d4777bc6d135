"""Report: the report.* tables of an open database → report.html, csv/, report.json, gpureport.duckdb."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from gpureport.query import Query
from gpureport.report.csv_files import write_csv
from gpureport.report.database import write_database
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.json_file import write_json
from gpureport.report.results import read_results


def write_report(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], header: Header, out: Path) -> list[Path]:
    """Write every form of the report into a folder; the files, the page first. Figures are rounded once, for all of them."""
    out.mkdir(parents=True, exist_ok=True)
    results = read_results(con, queries)
    return [
        write_html(results, header, out / "report.html"),
        *write_csv(results, out / "csv"),
        write_json(results, header, out / "report.json"),
        write_database(con, results, header, out / "gpureport.duckdb"),
    ]
