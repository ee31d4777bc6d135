"""Days behind each table of the lake: telemetry of the day alone, state also of the days around it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date

import duckdb

from gpureport.compute.query import Query
from gpureport.lake import Lake, views

TELEMETRY = ("owner_label", "device_label", "device_signal", "sample", "series")
"""The lake's tables beside ``device_sample`` that are made from samples."""


def open_lake_days(
    con: duckdb.DuckDBPyConnection,
    lake: Lake,
    chosen: Iterable[Query],
    clusters: Collection[str] | None,
    days: Collection[date],
    state_days: Collection[date],
) -> None:
    """Open as ``lake.*`` what queries read: telemetry of the days, all else of the state's days; of all clusters for None."""
    reads = {table.removeprefix("lake.") for query in chosen for table in query.reads if table.startswith("lake.")}
    views(con, lake, sorted(reads.intersection(TELEMETRY)), clusters, days)
    views(con, lake, sorted(reads.difference(TELEMETRY)), clusters, state_days)
