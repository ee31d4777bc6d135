"""report.html: one file with tabs and all rows, without network requests. Without scripts it shows one tab after the other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from gpureport.compute.query import Query
from gpureport.report.header import Header
from gpureport.report.page.answers import Answer
from gpureport.report.page.embedded import digest, environment, payload, script, stylesheet
from gpureport.report.page.grids import Grid, grids, of_team, trends
from gpureport.report.page.overview import Overview, overview, since_text
from gpureport.report.page.own_grids import TEAMS
from gpureport.report.page.tables import Namespace, Tables, opened_tables
from gpureport.report.page.words import BUCKETS, TABS, Money
from gpureport.values.catalog import FIGURES, REASONS

FOLDER = "by"
_NAME_MAX = 60
CHARTS = {
    "hours": ("capacity", "gpu_hours_over_time", "GPUs by use, hour by hour"),
    "distributions": ("gpus", "distributions", "Distribution of activity by cluster and GPU model"),
    "week": ("capacity", "hour_of_week", "Idle GPUs by weekday and hour"),
    "forecast": ("capacity", "demand_trend", "Demand forecast by GPU model (80 % interval)"),
    "quotas": ("quotas", "quota_fair_share", "Quota: guaranteed and delivered GPU-hours"),
    "cost": ("energy", "team_cost", "Cost by team"),
    "energy": ("energy", "energy_balance", "Energy by day"),
}
"""Charts that the page's script draws if their table exists: tab, table, title."""

_OF_TEAM = (
    "select distinct cluster, namespace from page.team where team = $team",
    "select cluster, scheduler, quota from report.quota_pod join page.team using (cluster, namespace) where team = $team",
)
"""Statements: namespaces of a team, and quotas of its pods."""
_TEAM_SUMS = f"""
    select team, round(columns('^(gpus|cost|.*_gpu_hours)$'), 6), [name for name in least_hours if name in (
        'gpus', 'cost', 'allocated_gpu_hours', 'effective_gpu_hours', 'underutilized_gpu_hours', 'idle_gpu_hours'
    )] as at_least from ({TEAMS})
"""


@dataclass(frozen=True)
class Written:
    """Written files, the page first if there is one, and the answers and the teams' sums of the whole report."""

    files: list[Path]
    answers: tuple[Answer, ...]
    teams: Sequence[Mapping[str, Any]]


def write_pages(
    con: duckdb.DuckDBPyConnection,
    queries: Mapping[str, Query],
    header: Header,
    folder: Path,
    owners: Mapping[Namespace, str] | None = None,
    has_files: bool = True,
) -> Written:
    """Write ``report.html`` and, with ``owners`` of namespaces, ``by/<owner>.html``. Without ``has_files``, only answer."""
    with opened_tables(con, owners or {}) as tables:
        money, hours = Money(str(header.settings.get("currency", ""))), header.window.seconds / 3600
        teams = tables.rows(_TEAM_SUMS, hours=hours)
        if not has_files:
            return Written([], overview(tables, header, money, {}).answers, teams)
        found = grids(tables, queries, hours, money)
        ranked = ranked_teams(tables) if owners is not None else []
        files = {team: f"{FOLDER}/{file_name(team)}.html" for team in ranked}
        page = _Page(tables, header, money)
        first = overview(tables, header, money, files)
        whole = page.write(folder / "report.html", first, found, files=files)
        own = (page.of_team(team, number, ranked, found, folder / files[team]) for number, team in enumerate(ranked, 1))
        return Written([whole, *own], first.answers, teams)


def ranked_teams(tables: Tables) -> list[str]:
    """Return every team with an allocated or reserved GPU, the largest first."""
    hours = "coalesce(sum(gpu_hours) filter (where bucket != 'reserved_idle'), 0)"
    rows = tables.rows(f"select team from page.use where team != '' group by team order by {hours} desc, team")
    return [row["team"] for row in rows]


def file_name(team: str) -> str:
    """Return a team's file name: letters, digits and hyphens. A changed name gets a digest, so that it stays unique."""
    kept = re.sub(r"[^a-z0-9]+", "-", team.lower()).strip("-")[:_NAME_MAX] or "team"
    return kept if kept == team else f"{kept}-{hashlib.sha256(team.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class _Page:
    """Writer of pages from one database."""

    tables: Tables
    header: Header
    money: Money

    def of_team(self, team: str, number: int, ranked: Sequence[str], found: Sequence[Grid], path: Path) -> Path:
        """Write the page of one team: its answers, and its rows of the tables that identify teams."""
        path.parent.mkdir(exist_ok=True)
        keys = [self.tables.frame(sql, team=team) for sql in _OF_TEAM if self.tables.can(sql)]
        own = [grid for each in found if (grid := of_team(each, team, keys)) is not None]
        first = overview(self.tables, self.header, self.money, {}, team)
        rank = f"rank {number:,} of {len(ranked):,} teams by allocated GPU-hours"
        return self.write(path, first, own, team=team, rank=rank)

    def write(
        self,
        path: Path,
        first: Overview,
        found: Sequence[Grid],
        *,
        files: Mapping[str, str] | None = None,
        team: str = "",
        rank: str = "",
    ) -> Path:
        """Write a page from the template."""
        shown = {column.name for grid in found for column in grid.columns}
        formulas = {name: FIGURES[name].formula for name in sorted(shown) if name in FIGURES and FIGURES[name].formula}
        charts = [(name, chart) for name, chart in CHARTS.items() if any(grid.name == chart[1] for grid in found)]
        there = {"overview", "about", *(["data"] if not team else []), *(["teams"] if first.teams else [])}
        there |= {grid.words.tab for grid in found}
        context = {
            "header": self.header, "overview": first, "team": team, "rank": rank, "files": files or {}, "buckets": BUCKETS,
            "tabs": {tab: title for tab, title in TABS.items() if tab in there},
            "grids": {tab: [grid for grid in found if grid.words.tab == tab] for tab in TABS},
            "charts": {tab: [(name, *of) for name, (of_tab, *of) in charts if of_tab == tab] for tab in TABS},
            "formulas": formulas, "reasons": REASONS,
            "since": since_text(self.header), "currency": self.money.currency,
            "trends": payload(_trends(self.tables, self.header, found)),
            "statements": payload({} if team else {grid.query.table: grid.query.sql for grid in found if grid.query}),
            "style": stylesheet(), "script": script(), "script_digest": digest(),
        }  # fmt: skip
        path.write_text(environment().get_template("report.html.j2").render(context), encoding="utf-8")
        return path


def _trends(tables: Tables, header: Header, found: Sequence[Grid]) -> dict[str, Any]:
    """Return trends of tables whose rows open one: rows with a finding first, then in the table's order."""
    shown = {}
    for grid in found:
        if grid.words.trend and grid.frame.height:
            frame = grid.frame
            if "finding" in frame.columns:
                frame = frame.sort(pl.col("finding").fill_null("") == "", maintain_order=True)
            shown[grid.words.trend] = trends(tables, grid.words.trend, header.window, frame)
    return shown
