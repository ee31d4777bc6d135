"""Facts of quotas: SQL prepares amounts, the schedulers' own rules compute shares, and SQL integrates the result.

A day is computed as a whole, because the fair share of one quota depends on all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import duckdb
import pyarrow as pa

from gpureport.compute.fact_views import Batch, lake_tables, limits
from gpureport.compute.query import Query, build, build_empty, build_view, load, needed
from gpureport.compute.quotas.kueue import quota_lending_table, quota_weighted_share_table
from gpureport.compute.quotas.labels import quota_label_tables
from gpureport.compute.quotas.shares import quota_native_table, quota_share_table, quota_unit_table
from gpureport.lake import Lake, views
from gpureport.schedulers.model import Rules
from gpureport.schedulers.nos import ORDER
from gpureport.values.tables import rules as made
from gpureport.values.tables.table import Table
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
"""Quota facts that are kept in the lake."""
_CUT = ("day.quota_watch", "day.quota_reported", "day.quota_terms")
"""Tables that are cut to the window, because quotas of adjacent days do not apply in it. Steps are cut in SQL."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of the schedulers' rules, without the tables that they read."""

    rules: Rules
    limits: Mapping[str, str]
    """Start (``since``) and end (``until``) of the window as SQL literals."""
    pod_order: Sequence[str] = ORDER
    """Order in which nos counts the pods of a quota."""


@dataclass(frozen=True)
class Rule:
    """Tables computed by the schedulers' rules; a node of the graph, like a query."""

    makes: tuple[Table, ...]
    reads: tuple[str, ...]
    make: Callable[[duckdb.DuckDBPyConnection, Arguments], Iterable[pa.Table]]

    @property
    def table(self) -> str:
        """Return the name of its first table, which identifies the rule in the graph."""
        return self.makes[0].name


RULES = (
    Rule((made.QUOTA_UNIT,), ("day.quota_terms",), lambda con, args: [quota_unit_table(con, args.rules)]),
    Rule(
        (made.QUOTA_NATIVE,),
        ("day.quota_node", "day.quota_pod", "day.quota_terms"),
        lambda con, args: [quota_native_table(con, args.rules)],
    ),
    Rule((made.QUOTA_SHARE,), ("day.quota_amount", "day.quota_capacity"), lambda con, args: [quota_share_table(con, args.rules)]),
    Rule((made.QUOTA_LENDING,), ("day.quota_amount", "day.quota_terms"), lambda con, _: [quota_lending_table(con)]),
    Rule(
        (made.QUOTA_WEIGHTED_SHARE,),
        ("day.quota_unit", "day.state_snapshot", "day.workload_run", "lake.quota", "lake.quota_term"),
        lambda con, args: [quota_weighted_share_table(con, args.limits, args.rules)],
    ),
    Rule(
        (made.QUOTA_POD_LABEL, made.QUOTA_EXPOSURE),
        ("day.quota_member", "day.quota_native", "day.quota_pod", "day.quota_terms", "day.quota_watch"),
        lambda con, args: quota_label_tables(con, args.pod_order),
    ),
)


def quota_graph() -> dict[str, Query | Rule]:
    """Return all queries and rules, by the tables that they make."""
    return {**load(), **{table.name: rule for rule in RULES for table in rule.makes}}


def quota_facts_of_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch, rules: Rules) -> dict[str, pa.Table]:
    """Return ``QUOTA_FACTS`` for the batch's days, computed in an empty database."""
    batch.open_lake(con, lake, needed(quota_graph(), QUOTA_FACTS), timedelta(days=1))
    build_quota_facts(con, rules, batch.window)
    return {name: con.sql(f"from {name}").to_arrow_table() for name in QUOTA_FACTS}


def quota_lake(con: duckdb.DuckDBPyConnection, lake: Lake, window: Window, clusters: Collection[str] | None = None) -> None:
    """Open the window's quota inputs as ``lake.*``: telemetry of its days, and state of its days and one day on each side."""
    days, one_day = list(window.days()), timedelta(days=1)
    around = [days[0] - one_day, *days, days[-1] + one_day]
    for tables, read in zip(lake_tables(needed(quota_graph(), QUOTA_FACTS)), (days, around), strict=True):
        views(con, lake, tables, clusters, read)


def build_quota_facts(
    con: duckdb.DuckDBPyConnection,
    rules: Rules,
    window: Window | None,
    given: Collection[str] = (),
    pod_order: Sequence[str] = ORDER,
    targets: Collection[str] = QUOTA_FACTS,
) -> None:
    """Build the targets and all their inputs from ``lake.*``, cut to the window; tables in ``given`` exist already.

    With ``day.quota_terms`` or ``day.quota_pod_interval`` given, the rules apply to other quotas or pods. ``pod_order``
    changes the order in which nos counts pods. Without quotas of accelerators, all tables are empty.
    """
    args = Arguments(rules, limits(window), pod_order)
    for table in {*_CUT}.intersection(given):
        _cut(con, table, args.limits)
    has_quotas = True
    for node in needed(quota_graph(), (made.QUOTA_UNIT.name, *targets), given):
        if isinstance(node, Rule):
            _put(con, node, node.make(con, args) if has_quotas else [each.schema.empty_table() for each in node.makes])
        elif not has_quotas:
            build_empty(con, node)
        elif node.table == "day.quota_amount":
            build_view(con, node)
        else:
            build(con, node, {})
        if node.table in _CUT:
            _cut(con, node.table, args.limits)
        if node.table == made.QUOTA_UNIT.name:
            has_quotas = bool(con.execute(f"select 1 from {node.table} limit 1").fetchone())


def _cut(con: duckdb.DuckDBPyConnection, table: str, within: Mapping[str, str]) -> None:
    cut = "greatest(start_at, {since}) as start_at, least(end_at, {until}) as end_at".format(**within)
    inside = "start_at < {until} and end_at > {since}".format(**within)
    con.execute(f"create or replace table {table} as select * replace ({cut}) from {table} where {inside}")


def _put(con: duckdb.DuckDBPyConnection, rule: Rule, found: Iterable[pa.Table]) -> None:
    con.execute("create schema if not exists day")
    for table, rows in zip(rule.makes, found, strict=True):
        con.register("_made", rows)
        con.execute(f"create or replace table {table.name} as from _made")
        con.unregister("_made")
