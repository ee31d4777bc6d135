"""Previous period of a report: the same queries with that period's times.

Those tables come first and are kept while the window's own are made. Where the lake does not hold all of it they are not
there, and what reads them is no part of the report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import duckdb

from gpureport.compute.fact_views import Facts
from gpureport.compute.identity import MadeWith, recorded
from gpureport.compute.query import Query, build, needed, of_life, ordered
from gpureport.lake import Lake, Partition
from gpureport.lake.views import views
from gpureport.values.window import Window, day_start, plain

HISTORY = ("period.demand_day",)
"""Tables kept of all days up to the period's end."""
_HISTORY_FACTS = ("facts.device_day", "facts.expected_device", "facts.ledger_day", "facts.node_allocation")
_HISTORY_DAYS = 182
_FIRST_DATA = {"facts.device_signal": ("start_at",), "facts.node_day": ("start_at",)}
FIRST_SCRAPE = timedelta(minutes=15)
"""From a beginning to the first sample or snapshot, at most."""


def compared_tables(queries: Mapping[str, Query]) -> list[str]:
    """The tables behind ``previous.*``: a report holds them, so that a later one can be compared with it."""
    return sorted({read for table in of_life(queries, "previous") for read in queries[table].reads})


def window_before(window: Window) -> Window:
    """The window of the same length that ends where this one begins."""
    return Window(window.start_at - (window.end_at - window.start_at), window.start_at)


def parameters(window: Window, previous: Window) -> dict[str, Any]:
    """Values for the parameters of the queries that compare two windows."""
    return {
        "since_at": plain(window.start_at),
        "until_at": plain(window.end_at),
        "previous_since_at": plain(previous.start_at),
        "previous_until_at": plain(previous.end_at),
        "window_ratio": window.seconds / previous.seconds,
    }


def comparable_clusters(lake: Lake, window: Window, previous: Window) -> list[str]:
    """The clusters with data from the previous window's beginning of which all days of both have facts that were made alike.

    None where a window cuts an hour, which would count in both.
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
    """The clusters whose first data come later than the window's beginning: what they did before is unknown, not nothing."""
    first = window.start_at.date()
    new = {*clusters} - {each.cluster for each in lake.computed_days() if each.date < first}
    with duckdb.connect() as con:
        views(con, lake, ["facts/device_signal", "facts/node_day"], new, [first], _FIRST_DATA)
        begins = " union all ".join(f"select cluster, start_at from {table}" for table in _FIRST_DATA)
        late = f"select cluster from ({begins}) group by cluster having min(start_at) > $latest"
        found = con.execute(late, {"latest": plain(window.start_at + FIRST_SCRAPE)}).fetchall()
    return {cluster for (cluster,) in found}


def made_by(partition: Partition) -> MadeWith:
    """The revisions and settings that a day's facts were made with."""
    return recorded(partition.lake.note(partition.cluster, partition.date))


def build_previous(facts: Facts, params: Mapping[str, Any], kept: Collection[str], passing: Collection[str]) -> bool:
    """Build ``previous.*`` over the facts of a window, and what is there already (``kept``); whether anything was there.

    Those that pass are dropped when nothing more is made of them. The views of facts are to be opened anew after it.
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
    """Build ``HISTORY`` over half a year of days, as far as their facts were made as the window's were.

    It ends with the last day of the window that the lake holds, for a window may reach far beyond that. The views of facts are
    to be opened anew after it.
    """
    held, wanted = facts.lake.computed_days(), set(facts.window.days())
    last = max(each.date for each in held if each.date in wanted)
    recent = [each for each in held if timedelta() <= last - each.date < timedelta(_HISTORY_DAYS)]
    alike = {made_by(each) for each in recent if each.date >= facts.window.start_at.date()}
    days = sorted({each.date for each in recent if made_by(each) in alike})
    whole = Window(day_start(days[0]), day_start(days[-1] + timedelta(days=1)))
    replace(facts, window=whole).open(_HISTORY_FACTS, days)
    for query in needed(facts.queries, HISTORY, _HISTORY_FACTS):
        build(facts.con, query, params)


def without(queries: Mapping[str, Query], absent: Collection[str]) -> list[str]:
    """The report tables that read none of the absent ones, however far down."""
    tables = [table for table, query in queries.items() if query.life == "report"]
    gone = set(absent)
    return [table for table in tables if not gone.intersection(query.table for query in needed(queries, [table]))]
