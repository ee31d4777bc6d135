"""``--figure-min-coverage``: what was seen for too little of the time is unknown, in every table, and whole at the bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb
import pytest

from gpureport import lake
from gpureport.compute.fact_views import ROLLED_UP
from gpureport.compute.query import build, load, needed, of_life
from gpureport.config.findings import expectations
from gpureport.values.tables import TABLE_BY_NAME

QUERIES = load()
KEPT = [table for table in of_life(QUERIES, "facts") if table not in ROLLED_UP]
HOUR = datetime(2026, 3, 1)
TABLES = ("report.device", "report.container_saturation", "report.container", "report.accelerator")
READ = [table for query in needed(QUERIES, TABLES, KEPT) for table in query.reads if table in KEPT]
FIGURE = re.compile(r".*_(ratio|avg|max|min|percent|joules|watts|celsius|hertz|count|codes|memory_used_bytes)")
SUMS = {"energy_joules", "xid_error_count", "xid_codes", "pcie_replay_count", "device_count"}
"""Sums of what happened, lower bounds at any coverage; energy is a counter's, over gaps too."""
CONSTANTS = {"power_limit_watts_max", "memory_total_bytes", "coverage_ratio"}
PARAMS = {
    "since_at": HOUR,
    "until_at": datetime(2026, 3, 1, 1),
    "memory_threshold_ratio": 0.9,
    "saturation_enabled": True,
    "idle_watts": "{}",
    "links": "{}",
    **expectations(),
    "gpu_models": "[]",
    "expected_before": "[]",
    "retired": "[]",
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The facts behind the tables: a device held by one container for an hour, of which every signal was seen for 1799 s."""
    empty = lake.open_lake(tmp_path_factory.mktemp("lake"), create=True)
    with duckdb.connect() as con:
        lake.views(con, empty, TABLE_BY_NAME)
        for query in needed(QUERIES, READ):
            build(con, query, PARAMS)
        _fill(con, "device_hour")
        _fill(con, "container_hour")
        _insert(con, "ownership", start_at=HOUR, end_at=datetime(2026, 3, 1, 1))
        yield con


def _fill(con: duckdb.DuckDBPyConnection, table: str) -> None:
    relation = con.table(f"facts.{table}")
    numeric = {name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) in ("DOUBLE", "BIGINT")}
    seen = {name: 1799.0 for name in numeric if name.endswith("_seen_seconds")}
    _insert(con, table, hour_start_at=HOUR, **{**dict.fromkeys(numeric, 1.0), **seen, "observed_seconds": 3600.0})


def _insert(con: duckdb.DuckDBPyConnection, table: str, **row: Any) -> None:
    keys = {
        "cluster": "c",
        "device_uuid": "GPU-a",
        "gpu_instance_id": "",
        "namespace": "ns",
        "pod": "p",
        "pod_uid": "",
        "container": "m",
    }
    row = {**{name: found for name, found in keys.items() if name in con.table(f"facts.{table}").columns}, **row}
    marks = ", ".join("?" for _ in row)
    con.execute(f"insert into facts.{table} ({', '.join(row)}) values ({marks})", list(row.values()))


def report(facts: duckdb.DuckDBPyConnection, table: str, min_coverage_ratio: float) -> dict[str, Any]:
    """The table's one row."""
    for query in needed(QUERIES, [table], KEPT):
        build(facts, query, {**PARAMS, "figure_min_coverage_ratio": min_coverage_ratio})
    relation = facts.table(table)
    (row,) = relation.fetchall()
    return dict(zip(relation.columns, row, strict=True))


@pytest.mark.parametrize("table", TABLES)
def test_a_figure_seen_for_less_than_half_the_time_is_unknown_and_says_so(facts: duckdb.DuckDBPyConnection, table: str) -> None:
    row = report(facts, table, 0.5)
    shown = {name for name, found in row.items() if FIGURE.fullmatch(name) and found is not None}
    assert shown - SUMS - CONSTANTS == set()
    hidden = {name for name, reason in row["unknown_reasons"].items() if reason == "low_coverage"}
    assert {name for name in hidden if row[name] is not None} == set()
    assert len(hidden) >= 2


@pytest.mark.parametrize("table", TABLES)
def test_at_the_bound_every_figure_is_shown(facts: duckdb.DuckDBPyConnection, table: str) -> None:
    assert "low_coverage" not in report(facts, table, 1799 / 3600)["unknown_reasons"].values()
