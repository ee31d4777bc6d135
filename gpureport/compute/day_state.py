"""Kubernetes' state of a day's pods, nodes and claims: valid in every part of the day, so it is read once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import duckdb
import pyarrow as pa

from gpureport.compute.fact_views import Batch, limits
from gpureport.compute.query import build, load, needed
from gpureport.lake import Lake

_STEP, _COUNTED = "day.demand_step", "facts.scheduler_hour"
"""Counts from steps that are cut to the day; the steps themselves are not needed after that."""
_KEPT = (
    "facts.claim_device",
    "facts.claim_hour",
    "facts.claim_reservation",
    "facts.claim_use",
    "facts.device_request",
    "facts.device_capacity",
    "facts.container_request",
    "facts.container_run",
    "facts.node_allocation",
    "facts.overallocation",
    "facts.state_agreement",
    "facts.refuted_holder",
    "facts.pod_wait",
)
_OF_THE_DAY = (
    "day.pod_life",
    "day.pod_request",
    "day.node_snapshot",
    "day.node_sharing",
    "day.claim_snapshot",
    "day.namespace_label",
    "day.kepler_series",
    "day.pod_controller",
    "day.outage",
)
_AROUND_THE_DAY = (
    *_KEPT,
    "day.snapshot_life",
    "day.granted_share",
    "day.reservation",
    "day.authoritative_use",
    "day.fragmentation",
)
"""State from snapshots: those of the day before and the day after give its beginning and end."""


def state_of_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch) -> dict[str, pa.Table]:
    """By table what is known from each day alone."""
    _build(con, lake, batch, _OF_THE_DAY, timedelta())
    return {table: con.sql(f"from {table}").to_arrow_table() for table in _OF_THE_DAY}


def state_around_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch) -> dict[str, pa.Table]:
    """By table what is known by snapshots, as far as it is of each day."""
    _build(con, lake, batch, (*_AROUND_THE_DAY, _COUNTED), timedelta(days=1))
    return {table: _of_day(con, batch, table) for table in _AROUND_THE_DAY} | _counted(con, batch)


def _counted(con: duckdb.DuckDBPyConnection, batch: Batch) -> dict[str, pa.Table]:
    con.register("_cut", _of_day(con, batch, _STEP))
    con.execute(f"create or replace table {_STEP} as from _cut")
    build(con, load()[_COUNTED], {})
    return {_COUNTED: con.sql(f"from {_COUNTED}").to_arrow_table()}


def _build(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch, targets: Collection[str], around: timedelta) -> None:
    """Make the tables in an empty database."""
    chosen = needed(load(), targets)
    batch.open_lake(con, lake, chosen, around)
    for query in chosen:
        build(con, query, {})


def _of_day(con: duckdb.DuckDBPyConnection, batch: Batch, table: str) -> pa.Table:
    """The hours of the day; of a table of spans, each as far as it is of the day; whole lives of pods that are named on it."""
    start, end = limits(batch.window).values()
    if "hour_start_at" in con.table(table).columns:
        return con.sql(f"from {table} where hour_start_at >= {start} and hour_start_at < {end}").to_arrow_table()
    if "start_at" not in con.table(table).columns:
        return con.table(table).to_arrow_table()
    cut = f"greatest(start_at, {start}) as start_at, least(end_at, {end}) as end_at"
    met = f"start_at < {end} and (end_at > {start} or start_at = {start})"
    return con.sql(f"select * replace ({cut}) from {table} where {met}").to_arrow_table()
