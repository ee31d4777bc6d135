"""Figures are the same for any order of rows in files: packed lakes, parts and threads each read another one."""

from __future__ import annotations

import shutil
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
from report_tables import report_tables

from bench.months import make_lake
from gpureport.compute.query import load
from gpureport.report.results import Result

WINDOW = ("2026-10-27", "2026-10-30")
TABLES = {query.table: query for query in load().values() if query.life == "report"}


def _tables(lake: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table of a report, as its files hold them."""
    with report_tables(lake, *WINDOW) as report:
        report.tables.open_named(" ".join(f"from {table};" for table in TABLES))
        found = [Result(query, report.con) for query in TABLES.values()]
        return {each.query.table: [*zip(each.rows.rows(), *each.maps.values(), strict=True)] for each in found}


def test_no_figure_depends_on_the_order_of_rows(simulated_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days equal but for pod names before those of the demo: many ties, and a previous period with the same hours."""
    lake = shutil.copytree(simulated_demo / "lake", tmp_path / "lake")
    monkeypatch.setattr("bench.months.LAST", date(2026, 10, 31))
    make_lake(lake, 0, 8)
    found = _tables(lake)
    views = import_module("gpureport.lake.views")
    as_it_is = views.replace_table

    def shuffled(con: duckdb.DuckDBPyConnection, name: str, made: str) -> None:
        as_it_is(con, name, f"{made} order by hash(random())" if made.startswith("view facts.") else made)

    monkeypatch.setattr(views, "replace_table", shuffled)
    assert sum(map(len, found.values())) > 1000
    for table, rows in _tables(lake).items():
        assert [pair for pair in zip(found[table], rows, strict=True) if pair[0] != pair[1]] == [], table
