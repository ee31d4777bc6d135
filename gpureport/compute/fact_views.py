"""The facts of a window: views of the tables that the lake has for its days, and of the daily roll-ups.

A day that is wholly in the window is read as compute stored it. Days at the window's edges, and days whose facts are older
than roll-ups, are rolled up here by the same SQL in the same order, so the sums are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby

import duckdb

from gpureport.compute.query import Node, Query, build, define_functions, needed, of_life
from gpureport.config.findings import expectations
from gpureport.lake import Lake, Partition, views
from gpureport.lake.views import create_view, replace_table, rows_of
from gpureport.values.window import Window, day_start, plain

TELEMETRY = ("owner_label", "device_label", "device_signal", "sample", "series")
"""The lake's tables that are made from samples, other than ``device_sample``."""


def lake_tables(chosen: Iterable[Node]) -> tuple[list[str], list[str]]:
    """The lake's tables that queries read: those made from samples, and those of state."""
    reads = {table.removeprefix("lake.") for query in chosen for table in query.reads if table.startswith("lake.")}
    return sorted(reads.intersection(TELEMETRY)), sorted(reads.difference(TELEMETRY))


def limits(window: Window | None) -> dict[str, str]:
    """``since`` and ``until`` of a window as SQL; without a window, those of the day in each row's cluster name (``Batch``)."""
    if window:
        return {"since": f"timestamp '{plain(window.start_at)}'", "until": f"timestamp '{plain(window.end_at)}'"}
    return {"since": "right(cluster, 10)::timestamp", "until": "right(cluster, 10)::timestamp + interval 1 day"}


ClusterDay = tuple[str, date]
"""A cluster and one of its days."""


@dataclass(frozen=True)
class Batch:
    """Days of clusters that are computed together. Each day has a cluster name of its own, so that rows of two days never join.

    Days are in order; the days of a cluster follow each other.
    """

    days: Sequence[ClusterDay]

    def name(self, each: ClusterDay) -> str:
        """Temporary cluster name of a day; a single day keeps the cluster's name."""
        return each[0] if len(self.days) == 1 else f"{each[0]} {each[1]}"

    @property
    def window(self) -> Window | None:
        """Window of a single day; None for several days."""
        return Window.of_day(self.days[0][1]) if len(self.days) == 1 else None

    def open_lake(self, con: duckdb.DuckDBPyConnection, lake: Lake, chosen: Iterable[Node], around: timedelta) -> None:
        """Open as ``lake.*`` the tables that queries read: telemetry of each day, and state of the days around it too."""
        chosen_tables, kept = lake_tables(chosen)
        self.views(con, lake, chosen_tables, {each: {each[1]} for each in self.days})
        self.views(con, lake, kept, {each: {each[1] - around, each[1], each[1] + around} for each in self.days})

    def views(
        self, con: duckdb.DuckDBPyConnection, lake: Lake, tables: Iterable[str], read: Mapping[ClusterDay, Collection[date]]
    ) -> None:
        """Open tables of the lake; each day sees the rows of the dates that it reads."""
        dates = {day for days in read.values() for day in days}
        views(con, lake, tables, {cluster for cluster, _ in self.days}, dates, names=self.named(read))

    def named(self, read: Mapping[ClusterDay, Collection[date]]) -> dict[str, list[ClusterDay]]:
        """Cluster and dates by temporary name; empty for a single day, which is read under its own name."""
        if len(self.days) == 1:
            return {}
        return {self.name(each): [(each[0], day) for day in sorted(read[each])] for each in self.days}


EXPECTED = "facts.expected_device"
_FOLDER = "facts/expected_device"


def last_known_days(lake: Lake, day: date) -> set[date]:
    """The last day up to this one that has expected devices, for each cluster."""
    latest: dict[str, date] = {}
    for each in _up_to(lake, day):
        latest[each.cluster] = max(each.date, latest.get(each.cluster, each.date))
    return set(latest.values())


def expected_before(lake: Lake, cluster: str, day: date, name: str) -> str:
    """Devices that are expected when a day begins, under the given cluster name: JSON for ``facts.expected_device``."""
    days = [each.date for each in _up_to(lake, day) if each.cluster == cluster and each.date < day]
    if not days:
        return "[]"
    with duckdb.connect() as con:
        views(con, lake, [_FOLDER], [cluster], [max(days)])
        return expected_next(con, name)


def expected_next(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """Devices that the open ``facts.expected_device`` still expects at the end of its day: the same JSON, for the next day."""
    devices = f"select * exclude (day, silent_hours) replace ($name as cluster) from {EXPECTED} where not is_gone order by all"
    made = f"select coalesce(to_json(list(device)), '[]')::varchar from ({devices}) as device"
    return str(con.execute(made, {"name": name}).fetchall()[0][0])


def _up_to(lake: Lake, day: date) -> Iterable[Partition]:
    return (each for each in lake.partitions(_FOLDER) if each.date <= day)


ROLLED_UP = {
    "facts.device_day": "facts.device_hour",
    "facts.container_day": "facts.container_hour",
    "facts.power_day": "facts.power_hour",
    "facts.device_power_day": "facts.device_power_hour",
    "facts.ledger_day": "facts.ledger_hour",
    "facts.energy_hour": "facts.device_power_hour",
    "facts.signal_day": "facts.device_hour",
    "facts.value_day": "facts.value_hour",
}
"""Roll-ups of facts, each with the table that has facts on the same days; their parameters are the window's hours."""


def day_hours(days: Collection[date]) -> dict[str, datetime]:
    """Parameters of a roll-up of whole days."""
    return {"since_at": plain(day_start(min(days))), "until_at": plain(day_start(max(days) + timedelta(days=1)))}


def folder(table: str) -> str:
    """Folder of a facts table in the lake."""
    return table.replace(".", "/")


@dataclass(frozen=True)
class Facts:
    """Opens the facts of a window under their names, for all or some clusters."""

    con: duckdb.DuckDBPyConnection
    lake: Lake
    queries: Mapping[str, Query]
    window: Window
    clusters: Collection[str] | None = None

    def open(self, tables: Collection[str], days: Sequence[date] | None = None) -> None:
        """Open tables, for all or some days of the window."""
        chosen = list(self.window.days()) if days is None else days
        for table in ROLLED_UP:
            if table in tables:
                self._open_rolled_up(table, chosen)
        hourly, wanted = {*tables} - {*ROLLED_UP, EXPECTED}, {table: query.columns for table, query in self.queries.items()}
        views(self.con, self.lake, [folder(table) for table in sorted(hourly)], self.clusters, chosen, wanted)
        if EXPECTED in tables and chosen:
            known = {*chosen, *last_known_days(self.lake, chosen[0])}
            views(self.con, self.lake, [folder(EXPECTED)], self.clusters, known, wanted)

    def _open_rolled_up(self, table: str, days: Sequence[date]) -> None:
        """Open a view of the longest run of days that the lake has rolled up, and of the days around it, rolled up now."""
        self.con.execute("create schema if not exists day; create schema if not exists facts")
        hours, kept = self._by_day(ROLLED_UP[table]), self._by_day(table)
        days = [day for day in days if day in hours or day in kept]  # a day without facts does not interrupt a run
        start_at, end_at = self.window.start_at, self.window.end_at
        whole = {day for day in days if start_at <= day_start(day) and day_start(day + timedelta(days=1)) <= end_at}
        runs = groupby(days, key=lambda day: day in whole and 0 < len(kept.get(day, ())) == len(hours.get(day, ())))
        run = max(([*run] for is_kept, run in runs if is_kept), key=len, default=[])
        partitions = [each for day in run for each in sorted(kept.get(day, ()), key=lambda each: each.cluster)]
        self.lake.fetch(partitions)
        name = table.replace("facts.", "day.")
        parts = self._rolled_up(table, [day for day in days if not run or day < run[0]], f"{name}_before")
        if partitions:
            create_view(self.con, f"{name}_kept", rows_of(partitions), {}, self.queries[table].columns)
            parts.append(f"select * exclude (date) from {name}_kept")
        parts += self._rolled_up(table, [day for day in days if run and day > run[-1]], f"{name}_after")
        if parts:
            replace_table(self.con, table, f"view {table} as {' union all by name '.join(parts)}")
        else:
            views(self.con, self.lake, [folder(table)], self.clusters, days, {table: self.queries[table].columns})

    def _by_day(self, table: str) -> dict[date, list[Partition]]:
        """Partitions of a table in the lake, by day."""
        found: dict[date, list[Partition]] = {}
        for partition in self.lake.partitions(folder(table)):
            if self.clusters is None or partition.cluster in self.clusters:
                found.setdefault(partition.date, []).append(partition)
        return found

    def _rolled_up(self, rolled_up: str, days: Sequence[date], table: str) -> list[str]:
        """Roll days up into a table and return the statement that reads it; an empty list where the lake has no facts of them."""
        *steps, query = needed(self.queries, [rolled_up], {*of_life(self.queries, "facts")} - {rolled_up})
        read = {table for each in (*steps, query) for table in each.reads if table.startswith("facts.")}
        hourly, wanted = [folder(table) for table in sorted(read)], {table: self.queries[table].columns for table in read}
        hours = {"since_at": plain(self.window.start_at), "until_at": plain(self.window.end_at), **expectations()}
        self.con.execute(f"drop table if exists {table}")
        define_functions(self.con, query.sql)
        making = f"create table {table} as"
        for day in days:
            if len(views(self.con, self.lake, hourly, self.clusters, [day], wanted)) == len(hourly):
                for step in steps:
                    build(self.con, step, hours)
                given = {name: hours[name] for name in query.params}
                self.con.execute(f"{making} from (\n{query.sql}\n) order by {', '.join(query.grain)}", given)
                making = f"insert into {table} by name"
        return [f"from {table}"] if making.startswith("insert") else []
