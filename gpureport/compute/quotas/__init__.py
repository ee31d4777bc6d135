"""The facts of quotas, in order: SQL puts amounts together, the schedulers' own rules speak, SQL integrates what became of it.

What a day holds is not cut into parts: whether one quota was fair is a question about all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

import duckdb
import pyarrow as pa

from gpureport.compute.fact_views import Batch, lake_tables, limits
from gpureport.compute.query import build, build_empty, build_view, load, needed
from gpureport.compute.quotas.kueue import quota_lending_table, quota_weighted_share_table
from gpureport.compute.quotas.labels import quota_label_tables
from gpureport.compute.quotas.shares import quota_native_table, quota_share_table, quota_unit_table
from gpureport.lake import Lake, views
from gpureport.schedulers.model import Rules
from gpureport.schedulers.nos import ORDER
from gpureport.values.tables.rules import QUOTA_EXPOSURE, QUOTA_POD_LABEL, QUOTA_WEIGHTED_SHARE, RULE_TABLES
from gpureport.values.window import Window

QUOTA_FACTS = (
    "facts.quota_hour",
    "facts.quota_starvation",
    "facts.quota_pair_hour",
    "facts.quota_pod_hour",
    "facts.quota_eviction",
    "facts.quota_audit_hour",
    "facts.quota_agreement",
    "facts.quota_refusal",
    "facts.workload_run",
)
"""Kept facts of quotas."""
_TERMS = "day.quota_terms"
_KNOWN = ("day.quota_watch", "day.quota_reported")
_AMOUNTS = (*_KNOWN, "day.quota_member", "day.quota_node")
_LABELS = (QUOTA_POD_LABEL.name, QUOTA_EXPOSURE.name)
_STEPS = ("day.quota_amount", "day.quota_capacity", "day.quota_free")


def quota_facts_of_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch, rules: Rules) -> dict[str, pa.Table]:
    """``QUOTA_FACTS`` of days of a cluster, made in an empty database."""
    batch.open_lake(con, lake, needed(load(), QUOTA_FACTS), timedelta(days=1))
    build_quota_facts(con, rules, batch.window)
    return {name: con.sql(f"from {name}").to_arrow_table() for name in QUOTA_FACTS}


def quota_lake(con: duckdb.DuckDBPyConnection, lake: Lake, window: Window, clusters: Collection[str] | None = None) -> None:
    """Open as ``lake.*`` what the quotas of a window are known by: telemetry of its days, state of the days around it too."""
    days, one_day = list(window.days()), timedelta(days=1)
    around = [days[0] - one_day, *days, days[-1] + one_day]
    for tables, read in zip(lake_tables(needed(load(), QUOTA_FACTS)), (days, around), strict=True):
        views(con, lake, tables, clusters, read)


def build_quota_facts(
    con: duckdb.DuckDBPyConnection,
    rules: Rules,
    window: Window | None,
    given: Collection[str] = (),
    pod_order: Sequence[str] = ORDER,
) -> None:
    """Build ``QUOTA_FACTS`` of ``limits`` and all that is behind them over ``lake.*``; tables that are ``given`` stand already.

    With ``day.quota_terms`` or ``day.quota_pod_interval`` given, the same rules answer for other quotas or other pods;
    with another ``pod_order`` nos' operator counts pods in that order.
    """
    built = set(given)
    _build(con, [_TERMS], built)
    _put(con, built, "day.quota_unit", quota_unit_table(con, rules))
    if not con.execute("select 1 from day.quota_unit limit 1").fetchone():
        _build_empty(con, built)
        return
    _build(con, _AMOUNTS, built)
    for table in _KNOWN:
        _cut(con, table, limits(window))
    _put(con, built, "day.quota_native", quota_native_table(con, rules))
    _build(con, _STEPS, built)
    _put(con, built, "day.quota_share", quota_share_table(con, rules))
    _put(con, built, "day.quota_lending", quota_lending_table(con))
    if QUOTA_WEIGHTED_SHARE.name not in built:
        _put(con, built, QUOTA_WEIGHTED_SHARE.name, quota_weighted_share_table(con, limits(window), rules))
    if not built.issuperset(_LABELS):
        for name, rows in quota_label_tables(con, pod_order).items():
            _put(con, built, name, rows)
    _build(con, QUOTA_FACTS, built)


def empty_rule_tables(con: duckdb.DuckDBPyConnection) -> None:
    """The tables that rules make, without rows: for queries over nothing."""
    for table in RULE_TABLES:
        _put(con, set(), table.name, table.schema.empty_table())


def _build(con: duckdb.DuckDBPyConnection, targets: Collection[str], built: set[str]) -> None:
    for query in needed(load(), targets, built):
        if query.table == "day.quota_amount":
            build_view(con, query)
        else:
            build(con, query, {})
        built.add(query.table)


def _build_empty(con: duckdb.DuckDBPyConnection, built: set[str]) -> None:
    """Empty tables where there are no quotas of accelerators."""
    empty_rule_tables(con)
    for query in needed(load(), (*_STEPS, *QUOTA_FACTS), built):
        build_empty(con, query)


def _cut(con: duckdb.DuckDBPyConnection, table: str, within: Mapping[str, str]) -> None:
    """Known times within limits; steps are cut likewise."""
    cut = "greatest(start_at, {since}) as start_at, least(end_at, {until}) as end_at".format(**within)
    inside = "start_at < {until} and end_at > {since}".format(**within)
    con.execute(f"create or replace table {table} as select * replace ({cut}) from {table} where {inside}")


def _put(con: duckdb.DuckDBPyConnection, built: set[str], name: str, rows: pa.Table) -> None:
    if name not in built:
        con.execute("create schema if not exists day")
        con.register("_made", rows)
        con.execute(f"create or replace table {name} as from _made")
        con.unregister("_made")
        built.add(name)
