"""Previous period of a report: the same queries with that period's times.

The tables of the previous period are built first and kept while the window's own are built. Where the lake lacks days of that
period they are not built, and the report leaves out the tables that read them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import duckdb

from gpureport.compute.fact_views import Facts
from gpureport.compute.identity import MadeWith, recorded
from gpureport.compute.query import Query, build, needed, of_life, ordered
from gpureport.lake import Lake, Partition
from gpureport.lake.views import views
from gpureport.values.window import Window, day_start, local, parse_zone, plain

HISTORY = ("period.demand_day",)
"""Tables that cover half a year of days, up to the period's end."""
_HISTORY_FACTS = ("facts.device_day", "facts.expected_device", "facts.ledger_day", "facts.node_allocation")
_HISTORY_DAYS = 182
_FIRST_DATA = {"facts.device_signal": ("start_at",), "facts.node_day": ("start_at",)}
FIRST_SCRAPE = timedelta(minutes=15)
"""Longest time from the start of a period to its first sample or snapshot."""


def compared_tables(queries: Mapping[str, Query]) -> list[str]:
    """The tables that ``previous.*`` are made from: a report stores them, so that a later report can be compared with it."""
    return sorted({read for table in of_life(queries, "previous") for read in queries[table].reads})


def window_before(window: Window, zone: str) -> Window:
    """The window that ends where this one begins: as many local days as this one, also over a clock change, else as long."""
    first, end = local(window.start_at, zone), local(window.end_at, zone)
    start = day_start((first - (end - first)).date(), parse_zone(zone))
    is_of_days = first.time() == end.time() == time()
    return Window(start if is_of_days else window.start_at - (window.end_at - window.start_at), window.start_at)


def parameters(window: Window, previous: Window) -> dict[str, Any]:
    """Parameters of the queries that compare two windows."""
    return {
        "since_at": plain(window.start_at),
        "until_at": plain(window.end_at),
        "previous_since_at": plain(previous.start_at),
        "previous_until_at": plain(previous.end_at),
        "window_ratio": window.seconds / previous.seconds,
    }


def comparable_clusters(lake: Lake, window: Window, previous: Window) -> list[str]:
    """Clusters with data from the start of the previous window, and with facts of all days of both windows, made alike.

    Empty where a window starts or ends within an hour, because that hour would count in both.
    """
    if not (window.is_whole_hours and previous.is_whole_hours):
        return []
    days = {*window.days(), *previous.days()}
    facts = [each for each in lake.computed_days() if each.date in days]
    found: dict[str, list[MadeWith]] = {}
    for partition in facts:
        found.setdefault(partition.cluster, []).append(made_by(partition))
    alike = {cluster for cluster, makers in found.items() if len(makers) == len(days) and len(set(makers)) == 1}
    return sorted(alike - _begun_within(lake, previous, alike))


def _begun_within(lake: Lake, window: Window, clusters: Collection[str]) -> set[str]:
    """Clusters whose first data is later than the start of the window: their usage before it is unknown, not zero."""
    first = window.start_at.date()
    new = {*clusters} - {each.cluster for each in lake.computed_days() if each.date < first}
    with duckdb.connect() as con:
        views(con, lake, ["facts/device_signal", "facts/node_day"], new, [first], _FIRST_DATA)
        begins = " union all ".join(f"select cluster, start_at from {table}" for table in _FIRST_DATA)
        late = f"select cluster from ({begins}) group by cluster having min(start_at) > $latest"
        found = con.execute(late, {"latest": plain(window.start_at + FIRST_SCRAPE)}).fetchall()
    return {cluster for (cluster,) in found}


def made_by(partition: Partition) -> MadeWith:
    """Revisions and settings of a day's facts."""
    return recorded(partition.lake.note(partition.cluster, partition.date))


def build_previous(facts: Facts, params: Mapping[str, Any], kept: Collection[str], passing: Collection[str]) -> bool:
    """Build ``previous.*`` from the facts of a window and the tables in ``kept``; return whether the window has any capacity.

    Tables in ``passing`` are dropped after their last use. The caller must open the views of facts again.
    """
    chosen = needed(facts.queries, of_life(facts.queries, "previous"), kept)
    facts.open({read for query in chosen for read in query.reads}.intersection(kept) - {*HISTORY})
    own = {**params, "since_at": plain(facts.window.start_at), "until_at": plain(facts.window.end_at)}
    for query, over in ordered(chosen):
        build(facts.con, query, own)
        for table in set(passing).intersection(over) - {*kept}:
            facts.con.execute(f"drop table {table}")
    return bool(facts.con.execute("from previous.capacity limit 1").fetchall())


def build_history(facts: Facts, params: Mapping[str, Any]) -> None:
    """Build ``HISTORY`` over half a year of days whose facts were made like those of the window.

    It ends with the window's last day in the lake, because a window may end much later. The caller must open the views of
    facts again.
    """
    held, wanted = facts.lake.computed_days(), set(facts.window.days())
    last = max(each.date for each in held if each.date in wanted)
    recent = [each for each in held if timedelta() <= last - each.date < timedelta(_HISTORY_DAYS)]
    alike = {made_by(each) for each in recent if each.date >= facts.window.start_at.date()}
    others = {each for each in recent if made_by(each) not in alike}
    days = sorted({each.date for each in {*recent} - others})
    whole = Window(day_start(days[0]), day_start(days[-1] + timedelta(days=1)))
    replace(facts, window=whole).open(_HISTORY_FACTS, days)
    for query in needed(facts.queries, HISTORY, _HISTORY_FACTS):
        build(facts.con, query, params)
        unlike = [f"{each.cluster} {each.date}" for each in others]  # on a day whose facts of another cluster were made alike
        facts.con.execute(f"delete from {query.table} where list_contains($1, concat_ws(' ', cluster, day))", [unlike])


def tables_without(queries: Mapping[str, Query], absent: Collection[str]) -> list[str]:
    """Report tables that do not read an absent table, directly or through other tables."""
    tables = [table for table, query in queries.items() if query.life == "report"]
    missing = set(absent)
    return [table for table in tables if not missing.intersection(query.table for query in needed(queries, [table]))]
