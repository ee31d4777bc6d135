"""Tables of the page: columns, texts, first rows, and the trends of a container or a GPU in an opened row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from gpureport.compute.query import Query
from gpureport.report.page.embedded import Column, lower_bounds, packed, text
from gpureport.report.page.own_grids import LEAST, OWN, ROWS_MAX
from gpureport.report.page.tables import Tables
from gpureport.report.page.words import Money, Words, kind_of, own_columns, tables_of_page
from gpureport.values.text import formats
from gpureport.values.text.safe import quoted
from gpureport.values.window import Window, plain, rfc3339

POINTS_MAX = 168
"""Points of a trend at most. In a longer window a point covers several hours, so that trends stay as small as a week's."""
VALUES_MAX = 250_000
"""Values of all trends of a kind at most. Rows beyond that have no trend on the page; the facts have all of them."""
KEYS = {
    "container": ("cluster", "namespace", "pod", "container", "pod_uid"),
    "device": ("cluster", "device_uuid", "gpu_instance_id"),
}
_FIGURES = ("sm", "engine", "memory")


def step_hours(window: Window) -> int:
    """Return the hours per point of a trend."""
    return -(-max(1, round(window.seconds / 3600)) // POINTS_MAX)


def trends(tables: Tables, kind: str, window: Window, wanted: pl.DataFrame) -> dict[str, Any]:
    """Return percentages by step for the first rows of a frame, as many as fit; {} without the facts."""
    table, step = f"facts.{kind}_hour", step_hours(window)
    if not tables.has(table):
        return {}
    count = max(1, VALUES_MAX // (3 * max(1, round(window.seconds / 3600 / step))))
    keys, named = ", ".join(KEYS[kind]), ", ".join(name for name in KEYS[kind] if name != "pod_uid")
    chosen = wanted.select(KEYS[kind]).head(count)
    tables.con.register("page_wanted", chosen.to_arrow())
    rows = tables.con.execute(
        f"""
        select {keys.replace("pod_uid", "page_wanted.pod_uid")},
            datediff('hour', date_trunc('hour', $since_at), hour_start_at) // {step} as step,
            round(100 * sum(sm_active_ratio_seconds) / nullif(sum(sm_active_seen_seconds), 0))::integer as sm,
            round(100 * sum(gr_engine_active_ratio_seconds) / nullif(sum(gr_engine_active_seen_seconds), 0))::integer as engine,
            round(100 * sum(memory_used_ratio_seconds) / nullif(sum(memory_seen_seconds), 0))::integer as memory
        from {table} as hour inner join page_wanted using ({named})
        where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
            {"and page_wanted.pod_uid in ('', hour.pod_uid)" if kind == "container" else ""}
        group by all order by all
        """,
        {"since_at": plain(window.start_at), "until_at": plain(window.end_at)},
    ).fetchall()
    tables.con.unregister("page_wanted")
    return {"since": rfc3339(window.start_at), "hours": step, "figures": _FIGURES, "of": _by_key(rows, len(KEYS[kind]))}


def _by_key(rows: list[tuple[Any, ...]], width: int) -> dict[str, list[Any]]:
    """Return by key the first step, and from there on a list for each figure; null where unknown."""
    steps: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
    for row in rows:
        steps.setdefault("\n".join(row[:width]), []).append((row[width], row[width + 1 :]))
    return {key: _filled(found) for key, found in steps.items() if len(found) > 1}


def _filled(found: list[tuple[int, tuple[Any, ...]]]) -> list[Any]:
    values, first, last = dict(found), found[0][0], found[-1][0]
    whole = [values.get(step, (None,) * len(_FIGURES)) for step in range(first, last + 1)]
    return [first, *map(list, zip(*whole, strict=True))]


# All classes of a cluster share the same free GPUs, so only one class is counted. Without those of a cluster the sum is unknown.
_FREE = """
    with class as (
        select * from report.supply_demand where waiting_pod_count > 0
        qualify dense_rank() over (partition by cluster order by wanted_model, size) = 1
    )
    select gpu_model as model, if(bool_or(bool_or(free_gpus is null)) over (), null, sum(free_gpus)) as gpus
    from class group by gpu_model
"""
_WAITING = """
    select wanted_model as model, sum(gpus) as gpus, bool_or(bool_or(gpus is null)) over () as is_least from (
        select cluster, wanted_model, size, max(waiting_gpus) as gpus from report.supply_demand group by all
    ) group by wanted_model
"""
_WAITING_CLUSTERS = """
    select string_agg(distinct cluster, ', ' order by cluster) as clusters from report.supply_demand where waiting_pod_count > 0
    having count(distinct cluster) < (select count(distinct cluster) from report.gpu_hour_ledger)
"""
"""The clusters with pending pods, if others have none: the free GPUs of those are in no row."""
_WANTED = {"any": "may be of any model", "unknown": "are of no known model", "none": "fit no node of the cluster"}


def supply_sentence(tables: Tables) -> str:
    """Return a sentence on free and pending GPUs at the end of the period; '' where nothing is pending."""
    free, waiting = _largest(tables, _FREE), _largest(tables, _WAITING)
    if waiting is None or not waiting[1]:
        return ""
    wanted, gpus = waiting
    parts = [f"{gpus} pending GPUs {_WANTED.get(wanted, f'are for {wanted}')}"]
    if free is not None:
        parts.insert(0, f"{free[1]} free GPUs are {free[0] or 'of an unknown model'}" if free[1] else "no GPU is free")
    part = tables.row(_WAITING_CLUSTERS).get("clusters")
    return f" At the end of the period{f' in {part}' if part else ''}: {'; '.join(parts)}."


def _largest(tables: Tables, sql: str) -> tuple[str, str] | None:
    """Return the model with most GPUs and the text "some of all", '' without any GPU; None where unknown."""
    rows = [row for row in tables.rows(sql) if row["gpus"] is not None]
    if not rows:
        return None
    first, total = max(rows, key=lambda row: row["gpus"]), sum(row["gpus"] for row in rows)
    some, whole = (formats.significant(round(each, 1)) for each in (first["gpus"], total))
    return first["model"], f"{some} of {'≥ ' if first.get('is_least') else ''}{whole}" if total else ""


ROWS_FIRST = 20
_OTHER_ROWS_MAX = 5_000
_CODES = frozenset({"dimension", "hours_method", "idle_source", "outage", "reason", "signal", "step"})
"""Columns that have codes in the files, and words on the page."""
_HELD = ("idle_by_holder", "team_budget", "team_cost")
"""Report tables with sums of the ledger's hours and their cost by holder."""
_CONCERNED = "concerned"
"""Column of the other teams that a row concerns."""
_CAUSES = {
    **{"size": "too few on one node", "share": "only shares free", "model": "other model", "mig": "split into MIG instances"},
    **{"no_dcp": "no profiling metrics", "driver": "not in this driver", "nan": "not a number", "dead": "counter always 0"},
}
"""Labels of codes that are no words themselves."""


@dataclass(frozen=True)
class Grid:
    """A table of the page with all its rows."""

    name: str
    words: Words
    columns: Sequence[Column]
    frame: pl.DataFrame
    row_count: int
    """Number of all rows; more than in the frame where the page has only the largest."""
    query: Query | None = field(default=None, repr=False)
    money: Money = field(default_factory=Money)

    @property
    def first(self) -> list[list[tuple[str, str]]]:
        """The first rows as text, each cell with its CSS class, for readers without scripts and for the first paint."""
        shown = [each for each in self.columns if not each.is_hidden]
        frame = self.frame.head(ROWS_FIRST)
        columns = [(each.kind, frame[each.name].to_list(), lower_bounds(each, frame)) for each in shown]
        cells = [[(self.written(kind, *cell), css(kind, cell[0])) for cell in zip(*of, strict=True)] for kind, *of in columns]
        return [list(row) for row in zip(*cells, strict=True)]

    def written(self, kind: str, found: object, is_least: bool) -> str:
        """Return a cell's text; the page's script writes the same."""
        if found is None or found == "":
            return formats.UNKNOWN if found is None else ""
        if kind == "money":
            return self.money(found, is_least)  # type: ignore[arg-type]
        return formats.at_least(_WRITTEN.get(kind, text)(found) or "", is_least)

    @property
    def data(self) -> str:
        """All rows, compressed."""
        return packed(self.columns, self.frame, groups=list(self.words.groups), trend=self.words.trend)


_WRITTEN: Mapping[str, Callable[[Any], str | None]] = {
    "number": formats.significant,
    "share": lambda found: f"{formats.percent_points(100 * found)} %",
    "kwh": lambda found: f"{formats.significant(found)} kWh",
    "joules": lambda found: f"{formats.significant(found / 3.6e6)} kWh",
    "bytes": lambda found: f"{formats.scaled(found, formats.IEC)}B",
    "duration": formats.duration,
    "watts": lambda found: f"{formats.significant(found)} W",
    "celsius": lambda found: f"{formats.significant(found)} °C",
}


def css(kind: str, found: object) -> str:
    """Return a cell's CSS class: numbers to the right, severities in their color."""
    if kind == "severity":
        return f"severity {found}"
    return "" if kind in ("text", "list", "long") else "number"


def grids(tables: Tables, queries: Mapping[str, Query], hours: float, money: Money) -> list[Grid]:
    """Return the tables that the page shows, in the order of its tabs: its own ones, and report tables unchanged."""
    found = (
        _own_grid(tables, name, words, hours) if name in OWN else _report_grid(tables, queries.get(f"report.{name}"), words)
        for name, words in tables_of_page().items()
    )
    several = bool(tables.row("select 1 from report.gpu_hour_ledger having count(distinct cluster) > 1"))
    return [replace(_of_clusters(grid, several), money=money, frame=_worded(grid.frame)) for grid in found if grid is not None]


def _of_clusters(grid: Grid, several: bool) -> Grid:
    """Make the cluster the first column if there are several, because names may repeat; else show it only in an opened row."""
    is_same = "cluster" not in grid.frame.columns or (not several and grid.frame["cluster"].n_unique() == 1)
    columns = [replace(each, is_hidden=is_same) if each.name == "cluster" else each for each in grid.columns]
    return replace(grid, columns=sorted(columns, key=lambda each: is_same or each.name != "cluster"))


def _worded(frame: pl.DataFrame) -> pl.DataFrame:
    codes = sorted(_CODES.intersection(frame.select(pl.selectors.string()).columns))
    return frame.with_columns(pl.col(codes).map_elements(lambda code: _CAUSES.get(code) or formats.title(code), pl.String))


def _own_grid(tables: Tables, name: str, words: Words, hours: float) -> Grid | None:
    sql = OWN[name]
    if not tables.can(sql):
        return None
    params, shown = {"hours": hours} if "$hours" in sql else {}, own_columns()[name]
    names = ", ".join(quoted(each) for each in (*(each.name for each in shown), _CONCERNED, "least_hours"))
    frame = tables.frame(f"select columns(lambda name: name in ({names})) from ({sql} limit {ROWS_MAX})", **params)
    columns = [each for each in shown if _has_data(frame, each.name)]
    count = frame.height
    if count == ROWS_MAX:
        rows = "report.container" if name == "containers" else f"({sql})"  # has as many rows, and is faster to count
        count = tables.row(f"select count(*) as count from {rows}", **({} if name == "containers" else params))["count"]
    return Grid(name, words, columns, frame, count) if count else None


def _report_grid(tables: Tables, query: Query | None, words: Words) -> Grid | None:
    if query is None or not tables.has(query.table):
        return None
    ((count,),) = tables.con.execute(f"select count(*) from {query.table}").fetchall()
    order = ", ".join(filter(None, (words.order, *query.grain)))  # ties have one order too
    limit = ROWS_MAX if "hour_start_at" in query.grain else _OTHER_ROWS_MAX  # charts need all hours
    name = query.table.removeprefix("report.")
    keys = ", ".join([each for each in query.grain if each != "team"] or ["team"])  # pages may be of other teams
    least = f"left join {LEAST.replace('$keys', keys)} using ({keys})" if name in _HELD and tables.can(LEAST) else ""
    frame = tables.frame(f"select * from {query.table} {least} order by {order} limit {limit}") if count else None
    if name == "supply_demand":
        words = words._replace(sentence=words.sentence + supply_sentence(tables))
    return None if frame is None else Grid(name, words, _columns(name, query, frame), frame, count, query)


def _columns(table: str, query: Query, frame: pl.DataFrame) -> list[Column]:
    """Return the query's columns that have data: those with texts of the page, and hidden ones.

    Maps, statements and the seconds behind each ratio are only in the files.
    """
    found, own = [], {each.name: each for each in own_columns().get(table, ())}
    for name in (*own, *(each for each in query.columns if each not in own)):
        is_twice = name.endswith("_kwh") and name.replace("_kwh", "_joules") in frame.columns
        kind = kind_of(name, frame.schema[name]) if name in frame.columns and not is_twice else ""
        if kind and _has_data(frame, name):
            shown = own.get(name) or Column(name, _title(name, kind), is_hidden=bool(own))
            found.append(replace(shown, kind=kind, doc=query.columns[name]))
    return found


def _title(name: str, kind: str) -> str:
    """Return a column's title, with its unit if no cell shows one."""
    title, unit = formats.title(name), formats.unit(name).replace("-", "\u2011")
    return f"{title[:1].upper()}{title[1:]}{f', {unit}' if unit and kind == 'number' else ''}"


def _has_data(frame: pl.DataFrame, name: str) -> bool:
    """Return whether any row has a value; a column without one is left out."""
    if name not in frame.columns or frame[name].null_count() == frame.height:
        return False
    return frame.schema[name] != pl.String or bool((frame[name] != "").any())


def of_team(grid: Grid, team: str, keys: Sequence[pl.DataFrame]) -> Grid | None:
    """Return the rows that name or concern a team, or have its key. None without any, or if a table with keys is cut."""
    frame, key = grid.frame, next((each for each in keys if {*each.columns} <= {*grid.frame.columns}), None)
    if "team" in frame.columns:
        concerns = pl.col(_CONCERNED).list.contains(team) if _CONCERNED in frame.columns else pl.lit(False)
        frame = frame.filter((pl.col("team") == team) | concerns)
    elif key is None or grid.row_count > frame.height:
        return None
    else:
        frame = frame.join(key, on=key.columns, how="semi", maintain_order="left")
    return replace(grid, frame=frame, row_count=frame.height) if frame.height else None
