"""Build the tables of a report from the facts of its window."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import duckdb

from gpureport.compute.fact_views import ROLLED_UP, Facts
from gpureport.compute.identity import MadeWith, restated_days
from gpureport.compute.look_back import (
    HISTORY,
    build_history,
    build_previous,
    comparable_clusters,
    compared_tables,
    made_by,
    tables_without,
    window_before,
)
from gpureport.compute.look_back import parameters as window_parameters
from gpureport.compute.query import Failure, Query, build, load, needed, of_life, ordered, require_checks, run_checks, with_values
from gpureport.config.findings import Thresholds
from gpureport.config.findings import parameters as finding_parameters
from gpureport.lake import Lake
from gpureport.values.errors import LakeError
from gpureport.values.window import Window

_LOG = logging.getLogger(__name__)
_SHOWN = ("period.workload", "period.pod_wait", "period.capacity", "period.price")
"""Tables of the period that the page reads."""
_CACHED_DAYS_MAX = 250
"""Limit of days, of all clusters, up to which file footers stay in memory: they take a megabyte a day."""
_COMPUTE_EACH = "run 'gpureport compute' for these days (--date, or --since and --until), then report again"


@dataclass(frozen=True)
class ReportSettings:
    """Settings that the figures of a report depend on, in addition to the facts."""

    figure_min_coverage_ratio: float = 0.5
    saturation_enabled: bool = True
    links: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Bandwidth of links in one direction, by model: pcie_bytes_per_second, nvlink_bytes_per_second."""
    idle_policy: str = "separate"
    """Attribution of idle energy: separate, to the holder of the device (holder), or to all holders of the pool (pool)."""
    findings: Mapping[str, Any] = field(default_factory=lambda: finding_parameters(Thresholds(), []))
    """Parameters of the queries of findings (``config.findings.parameters``)."""
    prices: Mapping[str, Any] = field(default_factory=dict)
    """gpu_hour (by model, or all) and kwh, each by the first day on which it applies; without prices there are no costs."""
    budgets: Mapping[str, float] = field(default_factory=dict)
    """Monthly budget by team."""
    currency: str = ""
    """Currency of the prices as an ISO 4217 code; without it there are no charges (FOCUS)."""
    team_label: str = "team"
    """The label of namespaces whose value is the team."""
    retired: Sequence[Mapping[str, str]] = ()
    """Clusters, nodes and devices that are no longer expected: cluster, node, device and since."""
    timezone: str = "UTC"
    """Time zone of days, weekdays and hours in reports."""
    carbon: Mapping[str, Any] = field(default_factory=dict)
    """pue, and grams_per_kwh: a list of basis (location or market), start_at and grams_per_kwh."""


def report_tables(tables: WindowTables, leave: Callable[..., int] | None = None) -> dict[str, Query]:
    """Build ``report.*`` over the facts of the window; return their queries with the values of parameters, by table.

    Tables that compare periods are left out where the lake lacks days of the previous period. ``checks.*`` then has the rows that
    checks of severity warn found. ``leave`` makes each table of pods that no other query reads, and takes each other table of
    pods after its last use.
    """
    absent = () if tables.has_previous else tables.previous
    tables.build(tables.read if tables.releases else tables.kept)
    targets = tables_without(tables.queries, [*_without_input(tables.con, tables.settings), *absent])
    tables.build_checked([*targets, *compared_tables(tables.queries)], leave)
    return {table: with_values(tables.queries[table], tables.params) for table in targets}


@dataclass
class WindowTables:
    """Tables over the facts of a window. A table is built, with the tables that it reads, when it is first requested.

    ``compared_with`` is the previous window by default. With ``releases``, a table of the period is dropped after its last use,
    unless a file of the report shows it: the tables of a quarter would fill the memory. LakeError, with the days, where facts
    are missing; a warning where they were not made with ``made_with``.
    """

    con: duckdb.DuckDBPyConnection
    lake: Lake
    window: Window
    settings: ReportSettings
    made_with: MadeWith | None = None
    compared_with: Window | None = None
    releases: bool = False

    def __post_init__(self) -> None:
        """LakeError for missing facts, a warning for those made otherwise; builds no table."""
        day_count = refuse_missing_facts(self.lake, self.window)
        for note in differing_days(self.lake, self.window, self.made_with) if self.made_with else ():
            _LOG.warning(note)
        if day_count > _CACHED_DAYS_MAX:
            self.con.execute("set parquet_metadata_cache = false")
        self._compared = self.compared_with or window_before(self.window, self.settings.timezone)
        self.queries = load()
        self._facts = Facts(self.con, self.lake, self.queries, self.window)
        self.kept, self.previous = of_life(self.queries, "facts"), of_life(self.queries, "previous")
        parameters = _report_parameters(self.window, self._compared, self.settings)
        self.params = {**parameters, "restated_days": restated_days(self.lake, self.window)}
        self.built: set[str] = set()
        passing = {*of_life(self.queries, "period")} - {*compared_tables(self.queries), *_SHOWN}
        self._passing = passing if self.releases else set[str]()

    def build(self, tables: Collection[str]) -> None:
        """Build tables, or open those of the lake; LakeError where a table compares windows and the lake lacks days of one."""
        self._prepare(tables)
        for query in needed(self.queries, tables, {*self.kept, *self.built}):
            build(self.con, query, self.params)
            self.built.add(query.table)

    def _prepare(self, tables: Collection[str]) -> None:
        """Open the facts that tables read, directly or through other tables."""
        wanted, opened = self._needed_for(tables), self.built.intersection(self.kept)
        if wanted.intersection(HISTORY):
            build_history(self._facts, self.params)
            self.built = self.built - {*self.kept} | {*HISTORY}
        if wanted.intersection(self.previous) and not self.has_previous:
            raise LakeError(f"no comparison: the lake lacks data of {self._compared}, or its facts were computed differently")
        self._open(self._needed_for(tables).intersection(self.kept) | opened - self.built)

    def build_checked(self, tables: Collection[str], leave: Callable[..., int] | None = None) -> None:
        """Build tables and run their checks, but no check of severity fail that reads only kept tables: compute ran it."""
        self._prepare(tables)
        there = {*self.kept, *self.built}
        made = {*there, *(query.table for query in needed(self.queries, tables, there))}
        checks = [
            query.table
            for query in self.queries.values()
            if query.life == "checks" and made.issuperset(query.reads) and not self._was_checked_with_facts(query)
        ]
        for query, over in ordered(needed(self.queries, [*tables, *checks], there)):
            if query.life == "checks":
                if require_checks(self.con, {query.table: query}, query.reads, self.params):
                    self._passing -= {*query.reads}  # ``failed_checks`` reads them again
            else:
                build(self.con, query, self.params, leave if leave and query.table in over and _is_of_pods(query) else None)
            for table in self._passing.intersection(over):
                self.con.execute(f"drop table {table}")
            for table in over:
                if leave and table != query.table and _is_of_pods(self.queries[table]):
                    leave(self.queries[table], "", {}, False)
        self.built.update(made)

    @property
    def read(self) -> list[str]:
        """The kept tables that a report and its checks read; to open others would compute digests of their files for nothing."""
        makers = (query for query in self.queries.values() if query.life not in ("day", "facts"))
        read = {table for query in makers if not self._was_checked_with_facts(query) for table in query.reads}
        return [table for table in self.kept if table in read]

    def _was_checked_with_facts(self, check: Query) -> bool:
        return check.severity == "fail" and {*self.kept}.issuperset(check.reads)

    def _needed_for(self, tables: Collection[str]) -> set[str]:
        """Tables and the tables that they read, directly or not, without those that are built."""
        chosen = needed(self.queries, tables, {*self.kept, *HISTORY, *self.previous, *self.built})
        return {*tables, *(table for query in chosen for table in query.reads)} - self.built

    @cached_property
    def has_previous(self) -> bool:
        """Whether there is a window to compare with. Builds its tables, under names that this window's tables get later."""
        kept = (*self.kept, *HISTORY)
        clusters = comparable_clusters(self.lake, self.window, self._compared)
        if not clusters:
            return False
        if not self.built.issuperset(HISTORY):
            build_history(self._facts, self.params)
        self.built = {*HISTORY, *self.previous}
        facts = replace(self._facts, window=self._compared, clusters=clusters)
        return build_previous(facts, self.params, kept, self._passing)

    def _open(self, tables: Collection[str]) -> None:
        """Open tables of the lake. A roll-up of days uses the names of hourly tables, so those are opened again."""
        rolled_up = {*tables}.intersection(ROLLED_UP)
        opened = {*tables, *(self.built.intersection(self.kept) if rolled_up else ())} - ({*ROLLED_UP} - rolled_up)
        self._facts.open(opened)
        self.built.update(tables)


def _is_of_pods(query: Query) -> bool:
    return query.life == "report" and "pod" in query.grain


def _report_parameters(window: Window, previous: Window, settings: ReportSettings) -> dict[str, Any]:
    """Parameters of the queries: the settings by their names, tables and lists of them as JSON."""
    own = {name: value for name, value in vars(settings).items() if name != "findings"}
    tables = {name: json.dumps(value, sort_keys=True) for name, value in own.items() if isinstance(value, dict | list | tuple)}
    return {**window_parameters(window, previous), **own, **tables, **settings.findings}


def _without_input(con: duckdb.DuckDBPyConnection, settings: ReportSettings) -> list[str]:
    """Tables that are not made, because the configuration or the collected data for them is absent."""
    absent = [] if settings.prices or settings.carbon else ["report.cost"]
    absent += [] if "gpu_hour" in settings.prices else ["report.team_budget", "report.team_cost"]
    absent += [] if "gpu_hour" in settings.prices and settings.currency else ["report.focus"]
    if not con.execute("select 1 from facts.kepler_hour limit 1").fetchone():
        absent.append("report.kepler_pod")
    return absent


def failed_checks(con: duckdb.DuckDBPyConnection, params: Mapping[str, Any]) -> list[Failure]:
    """Failures of severity warn in the tables of a report; the checks run again, because names may be anonymous by now."""
    rows = con.execute("select table_name from information_schema.tables where table_schema = 'checks'").fetchall()
    made = {f"checks.{name}" for (name,) in rows}
    found = [query for table, query in load().items() if table in made and con.execute(f"from {table} limit 1").fetchall()]
    return run_checks(con, found, params)


def refuse_missing_facts(lake: Lake, window: Window) -> int:
    """Number of days with facts, counted for each cluster; LakeError where some days lack them."""
    days = set(window.days())
    facts = [each for each in lake.computed_days() if each.date in days]
    held = {(each.cluster, each.date) for each in facts}
    sampled = {(each.cluster, each.date) for each in lake.partitions("device_sample") if each.date in days}
    if lacking := {day for _, day in sampled - held}:
        raise LakeError(f"no facts yet for {_listed(lacking)}; {_COMPUTE_EACH}")
    if not facts:
        raise LakeError(f"the lake at {lake} has no data for {window}; export or import those days first")
    return len(facts)


def differing_days(lake: Lake, window: Window, made_with: MadeWith, has_names: bool = True) -> tuple[str, ...]:
    """Sentences about days that count but have other revisions or settings than now, which may name GPUs (``has_names``)."""
    days = set(window.days())
    facts = [(each, made_by(each)) for each in lake.computed_days() if each.date in days]
    revised = {each.date: made.revised(made_with) for each, made in facts if made.revised(made_with)}
    others = [(each, made) for each, made in facts if made.has_other_settings(made_with)]
    sampled = {(each.cluster, each.date) for each in lake.partitions("device_sample")}
    count = len({each.date for each, _ in facts})
    found = []
    if revised:
        tables = sorted({table for tables in revised.values() for table in tables})
        found.append(
            f"{len(revised)} of {count} days were computed by another revision of {', '.join(tables)}: {_listed(revised)}"
        )
    for is_gone, rest in ((False, f"; {_COMPUTE_EACH}"), (True, "; their samples are gone")):
        if unlike := {each.date: made for each, made in others if ((each.cluster, each.date) not in sampled) == is_gone}:
            what = next(iter(unlike.values())).differences(made_with) if has_names else "other settings"
            found.append(f"{len(unlike)} of {count} days were computed with {what}: {_listed(unlike)}{rest}")
    return tuple(found)


def _listed(days: Collection[date]) -> str:
    """Days as text; three or more days in a row as the first and the last."""
    runs: list[list[date]] = []
    for day in sorted(days):
        if runs and day - runs[-1][-1] == timedelta(days=1):
            runs[-1].append(day)
        else:
            runs.append([day])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
