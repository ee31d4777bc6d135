"""The page's second screen: supply and use over time, when and by whom GPUs are held for nothing, who waits, what quotas gave.

A panel stands where its table has rows; else a sentence stands there which says what would fill it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpureport import formats
from gpureport.report import course_charts, panel_charts
from gpureport.report.panel_lists import HEADLINES, LISTS, Listing, listing
from gpureport.report.results import Result

_HOURS_FOR_A_COURSE = 3
_HOURS_FOR_A_WEEK = 48


@dataclass(frozen=True)
class Panel:
    """One question and its answer; ``chart`` is '' and ``listing`` None where a sentence, ``missing``, must do."""

    anchor: str
    title: str
    sentence: str
    missing: str
    chart: str = ""
    alternative: str = ""
    """What the chart shows, for who cannot see it."""
    key: tuple[tuple[str, str], ...] = ()
    """Class and words of what the chart's lines and colours mean."""
    table: str = ""
    """The report table with the numbers; '' for none."""
    listing: Listing | None = None

    def drawn(self, chart: str, alternative: str, key: Sequence[tuple[str, str]] = ()) -> Panel:
        """The same with a chart."""
        return replace(self, chart=chart, alternative=alternative, key=tuple(key))


def panels(tables: Mapping[str, Result]) -> tuple[Panel, ...]:
    """Every panel that has something to say, in the order of the page."""
    drawn = (draw(tables) for draw in (_supply, _week, _idle, _changed, _trend, _quotas))
    in_short = (listed(tables, name) for name in LISTS if name in tables or name in HEADLINES)
    return tuple(panel for panel in (*drawn, *in_short) if panel.chart or panel.listing or panel.missing)


def _rows(tables: Mapping[str, Result], name: str) -> list[dict[str, Any]]:
    return list(tables[name].rows.iter_rows(named=True)) if name in tables else []


def _supply(tables: Mapping[str, Result]) -> Panel:
    rows = _rows(tables, "gpu_hour_course")
    hours = len({row["hour_start_at"] for row in rows})
    wait = waiting(tables)
    is_waited = any(wait.units.values())
    panel = Panel(
        anchor="supply",
        title="Supply and use over time",
        sentence="GPUs that could be used, and how many of them were held, active and effective."
        + (f" Above: {wait.resource} that pods asked for and did not get." if is_waited else ""),
        missing=f"Needs {_HOURS_FOR_A_COURSE} hours or more to show a course; {hours} are known.",
        table="gpu_hour_course",
    )
    if hours < _HOURS_FOR_A_COURSE:
        return panel
    is_unnamed = any(row["unnamed_gpu_hours"] for row in rows)
    key = [("area usable", "nobody's"), ("area held", "held, idle"), ("area active", "active"), ("area effective", "effective")]
    return panel.drawn(
        course_charts.supply(rows, wait.units if is_waited else {}),
        "GPUs usable, held, active and effective, hour by hour, as areas within each other",
        (
            *([("area unnamed", "unknown whose")] if is_unnamed else []),
            *key,
            *([("line waiting", "asked for and not to be had")] if is_waited else []),
        ),
    )


@dataclass(frozen=True)
class Waiting:
    """Units that pods wait for by hour, of the resource that the most is offered of; names of one device are never added."""

    resource: str
    units: Mapping[Any, float]
    """Mean of each hour, over the part of it that was observed."""
    device_hours: float
    gated_pod_hours: float = 0.0
    """Hours of pods held back before the scheduler sees them, as Kueue does: what they ask for is not in the rest."""

    @property
    def is_known(self) -> bool:
        """Whether anything tells of it."""
        return bool(self.units)


def waiting(tables: Mapping[str, Result]) -> Waiting:
    """What pods wait for, from report.scheduler_pressure; of nothing where the report has no such rows."""
    offered: dict[str, float] = {}
    for row in _rows(tables, "scheduler_pressure"):
        units_there = row["schedulable_units_avg"] or row["allocatable_units_avg"] or 0.0
        offered[row["resource"]] = offered.get(row["resource"], 0.0) + units_there
    if not any(offered.values()):
        return Waiting("", {}, 0.0)
    resource = max(sorted(offered), key=lambda name: offered[name])
    units: dict[Any, float] = {}
    device_hours = gated_pod_hours = 0.0
    for row in _rows(tables, "scheduler_pressure"):
        if row["resource"] == resource and row["unscheduled_units_avg"] is not None:
            units[row["hour_start_at"]] = units.get(row["hour_start_at"], 0.0) + row["unscheduled_units_avg"]
            device_hours += row["unscheduled_units_avg"] * row["demand_observed_seconds"] / 3600
            gated_pod_hours += (row["gated_pod_count_avg"] or 0.0) * row["demand_observed_seconds"] / 3600
    return Waiting(resource, units, device_hours, gated_pod_hours)


def _week(tables: Mapping[str, Result]) -> Panel:
    rows = [row for row in _rows(tables, "hour_of_week") if row["held_idle_ratio"] is not None]
    hours = sum(row["hour_count"] for row in rows)
    panel = Panel(
        anchor="week",
        title="When GPUs are held idle",
        sentence="Share of the usable GPUs held and not active, by weekday and hour (UTC); the fuller the colour, the more.",
        missing=f"Needs {_HOURS_FOR_A_WEEK} hours or more to show a habit; {hours} are known.",
        table="hour_of_week",
    )
    if hours < _HOURS_FOR_A_WEEK:
        return panel
    most = max(rows, key=lambda row: row["held_idle_ratio"])
    day = panel_charts.WEEKDAYS[most["weekday"] - 1]
    told = f"most, {formats.percent(most['held_idle_ratio'])}, on {day} at {most['hour_of_day']:02d}:00"
    return panel.drawn(panel_charts.week(rows), f"Held and not active by weekday and hour: {told}", (("", told),))


def _idle(tables: Mapping[str, Result]) -> Panel:
    rows = sorted(_rows(tables, "idle_by_holder"), key=lambda row: (-row["idle_gpu_hours"], row["namespace"]))
    panel = Panel(
        anchor="idle",
        title="Who holds idle GPUs",
        sentence="GPU-hours held or reserved and not active, largest first; in brackets their share, cumulated from the top.",
        missing="No GPU was held idle in this window, as far as it was seen.",
        table="idle_by_holder",
    )
    if not rows:
        return panel
    whole = sum(row["idle_gpu_hours"] for row in rows)
    enough = next(number for number, part in enumerate(_running(rows), 1) if part >= 0.8 * whole - 1e-9)
    first = formats.counted(enough, "namespace")
    part = f" of {len(rows):,} {'holds' if enough == 1 else 'hold'} four fifths" if enough < len(rows) else ": all"
    told = f"{first}{part} of {formats.gpu_hours(whole)}"
    return panel.drawn(panel_charts.pareto(rows), f"Idle GPU-hours by namespace: {told}", (("", told),))


def _running(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    sums: list[float] = []
    for row in rows:
        sums.append((sums[-1] if sums else 0.0) + row["idle_gpu_hours"])
    return sums


def _changed(tables: Mapping[str, Result]) -> Panel:
    rows = [row for row in _rows(tables, "gpu_hour_bridge") if row["measure"] == "allocated"]
    panel = Panel(
        anchor="changed",
        title="What changed since the window before",
        sentence="GPU-hours held, step by step from the window before to this one; the steps add up.",
        missing="The lake must also hold the window before, equally long and computed alike.",
        table="gpu_hour_bridge" if rows else "",
    )
    if not rows or any(row["gpu_hours"] is None for row in rows):
        return panel
    return panel.drawn(panel_charts.bridge(rows), "GPU-hours held before and now, and the steps between")


def _trend(tables: Mapping[str, Result]) -> Panel:
    rows = _rows(tables, "demand_trend")
    panel = Panel(
        anchor="trend",
        title="Demand to come, by model",
        sentence="GPU-hours held a day, what is usable, and what is expected, with the band for four days of five.",
        missing="",  # report.runway says what is lacking
        table="demand_trend",
    )
    if not any(row["kind"] == "forecast" for row in rows):
        return panel
    models = len({row["gpu_model"] for row in rows})
    if models > course_charts.MODELS_SHOWN:
        panel = replace(panel, sentence=f"{panel.sentence} The {course_charts.MODELS_SHOWN} of {models:,} models held most.")
    key = (("line held", "held"), ("line usable", "usable"), ("line expected", "expected"), ("area active", "low to high"))
    return panel.drawn(course_charts.trend(rows), "GPU-hours a day by model: held, usable, and expected with a band", key)


def _quotas(tables: Mapping[str, Result]) -> Panel:
    named = ("guaranteed_gpu_hours", "demanded_gpu_hours", "delivered_gpu_hours")
    leaves = [row for row in _rows(tables, "quota_fair_share") if not row["is_parent"]]
    rows = [row for row in leaves if None not in map(row.get, named) and any(map(row.get, named))]
    panel = Panel(
        anchor="quotas",
        title="What quotas promised and gave",
        sentence="GPU-hours delivered (bar) against those guaranteed (mark) and those asked for (pale bar).",
        missing="No quota of any scheduler is known for this window: gpureport snapshot reads them.",
        table="quota_fair_share" if "quota_fair_share" in tables else "",
    )
    if not rows:
        return panel
    key = (("area effective", "delivered"), ("area usable", "asked for"), ("mark", "guaranteed"))
    return panel.drawn(panel_charts.bullets(rows), "Delivered, guaranteed and demanded GPU-hours by quota", key)


def listed(tables: Mapping[str, Result], name: str) -> Panel:
    """The panel of a short list."""
    chosen = LISTS[name]
    found = listing(tables[name], chosen) if name in tables else None
    return Panel(
        f"about-{name}", chosen.title, chosen.sentence, chosen.missing, table=name if name in tables else "", listing=found
    )
