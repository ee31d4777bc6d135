"""Courses of the second screen as static SVG: supply and use hour by hour, demand day by day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from gpureport import formats
from gpureport.report.charts import svg, time_axis
from gpureport.report.tips import bands, moment

POINTS_MAX = 372
"""A longer course has steps of several hours: half a month's points are what a page's width can show."""
MODELS_SHOWN = 4
_PARTS = (
    # figure of report.gpu_hour_course, colour, word; known_gpu_hours are the usable ones without unnamed_gpu_hours
    ("usable_gpu_hours", "var(--unknown)", "usable"),
    ("known_gpu_hours", "var(--free)", "of which it is known whose they were"),
    ("held_gpu_hours", "var(--idle)", "held"),
    ("active_gpu_hours", "var(--ineffective)", "active"),
    ("effective_gpu_hours", "var(--effective)", "effective"),
)
_USABLE, _KNOWN, _HELD = range(3)
_Hour = list[float | None]
"""An hour's amounts, in the order of the parts."""
_DAY_AMOUNTS = ("held_gpu_hours", "usable_gpu_hours", "low_gpu_hours", "expected_gpu_hours", "high_gpu_hours")
_DAY_LINES = (
    # figure of report.demand_trend, colour, dash
    ("usable_gpu_hours", "var(--soft)", [2, 2]),
    ("held_gpu_hours", "var(--effective)", [1, 0]),
    ("expected_gpu_hours", "var(--idle)", [5, 3]),
)
_DAYS = {
    "field": "day",
    "type": "temporal",
    "scale": {"type": "utc"},
    "axis": {"title": None, "grid": False, "format": "%-d %b"},
}
_MODEL_HEADER = {"labelAngle": 0, "labelAlign": "left", "labelOrient": "top"}


def supply(rows: Sequence[Mapping[str, Any]], waiting: Mapping[datetime, float]) -> str:
    """Areas within each other: GPUs usable, held, active, effective; ``waiting``, units by hour, a line on top of held.

    GPUs of which it is not known whose they were are the outermost area.
    """
    by_hour = _by_hour(rows)
    points = _closed([_point(start, found, waiting) for start, found in _steps(by_hour)], max(by_hour) + timedelta(hours=1))
    is_known = all(point[f"y{_USABLE}"] == point[f"y{_KNOWN}"] for point in points)
    layers = [_area(number, colour) for number, (_, colour, _) in enumerate(_PARTS) if not (is_known and number == _USABLE)]
    return svg(
        {
            "data": {"values": _to_their_ends(points)},
            "width": 1000,
            "height": 240,
            "encoding": {
                "x": {
                    "field": "at",
                    "type": "temporal",
                    "scale": {"type": "utc"},
                    "axis": time_axis((max(by_hour) - min(by_hour)) / timedelta(days=1)),
                }
            },
            "layer": [*layers, *([_line()] if waiting else []), bands(_told(points))],
        }
    )


def _by_hour(rows: Sequence[Mapping[str, Any]]) -> dict[datetime, _Hour]:
    """Each hour's amounts, models added up; None where no model's is known."""
    found: dict[datetime, list[Mapping[str, Any]]] = {}
    for row in rows:
        known = row["usable_gpu_hours"] - row["unnamed_gpu_hours"]
        found.setdefault(row["hour_start_at"], []).append({**row, "known_gpu_hours": known})
    return {at: [_sum([row[name] for row in models]) for name, *_ in _PARTS] for at, models in found.items()}


def _sum(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _steps(by_hour: Mapping[datetime, _Hour]) -> list[tuple[datetime, list[tuple[datetime, _Hour]]]]:
    """The hours from the first to the last in steps of equal length; hours that were not seen are absent from theirs."""
    first, last = min(by_hour), max(by_hour)
    count = round((last - first) / timedelta(hours=1)) + 1
    hours = -(-count // POINTS_MAX)
    starts = [first + timedelta(hours=hours * number) for number in range(-(-count // hours))]
    inside = ([at for at in (start + timedelta(hours=number) for number in range(hours)) if at in by_hour] for start in starts)
    return [(start, [(at, by_hour[at]) for at in found]) for start, found in zip(starts, inside, strict=True)]


def _point(start: datetime, hours: Sequence[tuple[datetime, _Hour]], waiting: Mapping[datetime, float]) -> dict[str, Any]:
    """Means over the step's hours; None, a gap, where none was seen."""
    point: dict[str, Any] = {"at": f"{start.isoformat()}Z"}
    for number in range(len(_PARTS)):
        point[f"y{number}"] = _mean([found[number] for _, found in hours])
    asked = [(found[_HELD] or 0.0, waiting[at]) for at, found in hours if at in waiting]
    return {**point, "waiting": _mean([sum(each) for each in asked]), "waited": _mean([units for _, units in asked])}


def _closed(points: list[dict[str, Any]], end: datetime) -> list[dict[str, Any]]:
    """With the last step's values once more at its end: a step is drawn up to the next point."""
    return [*points, {**points[-1], "at": f"{end.isoformat()}Z"}]


def _to_their_ends(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points, and where nothing more is known of a figure one more with its last amount: else its last step is not drawn."""
    drawn = list(points[:1])
    for before, after in pairwise(points):
        ended = {name: before[name] for name, found in after.items() if found is None and before[name] is not None}
        drawn += [{**after, **ended}, after] if ended else [after]
    return drawn


def _told(points: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What stands over each step, up to the next point."""
    return [{"since": point["at"], "until": after["at"], "tip": _tip(point)} for point, after in pairwise(points)]


def _tip(point: Mapping[str, Any]) -> str:
    start = moment(datetime.fromisoformat(point["at"]))
    if point[f"y{_USABLE}"] is None:
        return f"{start}: not seen"
    is_known = point[f"y{_USABLE}"] == point[f"y{_KNOWN}"]
    told = [
        _amount(point[f"y{number}"], word) for number, (_, _, word) in enumerate(_PARTS) if not (is_known and number == _KNOWN)
    ]
    if point["waited"] is not None:
        told.append(f"{formats.significant(point['waited'])} waited for")
    return f"{start}: GPUs {', '.join(told)}"


def _amount(found: float | None, word: str) -> str:
    return f"{word} unknown" if found is None else f"{formats.significant(found)} {word}"


def _mean(found: Sequence[float | None]) -> float | None:
    """Over those that are known."""
    known = [amount for amount in found if amount is not None]
    return round(sum(known) / len(known), 3) if known else None


def _area(number: int, colour: str) -> dict[str, Any]:
    return {
        "mark": {"type": "area", "color": colour, "interpolate": "step-after", "invalid": "break-paths-show-domains"},
        # Two points may stand at one instant, the end of a step and the next one's start: neither stands on the other.
        "encoding": {"y": {"field": f"y{number}", "type": "quantitative", "axis": _axis("GPUs"), "stack": None}},
    }


def _line() -> dict[str, Any]:
    mark = {"type": "line", "color": "var(--grave)", "strokeWidth": 1.5, "strokeDash": [4, 2], "interpolate": "step-after"}
    return {
        "mark": {**mark, "invalid": "break-paths-show-domains"},
        "encoding": {"y": {"field": "waiting", "type": "quantitative", "axis": _axis("GPUs")}},
    }


def _axis(title: str) -> dict[str, Any]:
    return {"title": title, "tickCount": 5, "domain": False, "ticks": False}


def trend(rows: Sequence[Mapping[str, Any]]) -> str:
    """By model (those held most), days: held and usable as lines, from then on what is expected within a band."""
    ranked = sorted({row["gpu_model"] for row in rows}, key=lambda model: (-_held(rows, model), model))
    shown = ranked[:MODELS_SHOWN]
    values = [_day(row) for row in rows if row["kind"] != "left out" and row["gpu_model"] in shown]
    lines = (_day_line(name, colour, dash) for name, colour, dash in _DAY_LINES)
    return svg(
        {
            "data": {"values": values},
            "facet": {"row": {"field": "model", "type": "nominal", "title": None, "header": _MODEL_HEADER}},
            "spec": {"width": 560, "height": 90, "layer": [_day_band(), *lines, bands()]},
            "resolve": {"scale": {"y": "independent"}},
        }
    )


def _day(row: Mapping[str, Any]) -> dict[str, Any]:
    """A model's day as the chart reads it."""
    amounts = {name: row[name] for name in _DAY_AMOUNTS}
    return {"model": row["gpu_model"] or "unknown model", "day": row["day"].isoformat(), **amounts, **_around(row)}


def _day_line(name: str, colour: str, dash: Sequence[int]) -> dict[str, Any]:
    mark = {"type": "line", "color": colour, "strokeWidth": 1.5, "strokeDash": dash, "invalid": "break-paths-show-domains"}
    y = {"field": name, "type": "quantitative", "axis": _axis("GPU-h a day")}
    return {"mark": mark, "encoding": {"x": _DAYS, "y": y}}


def _day_band() -> dict[str, Any]:
    """Where four days of five are expected."""
    mark = {"type": "area", "color": "var(--ineffective)", "opacity": 0.6, "invalid": "break-paths-show-domains"}
    y, y2 = {"field": "low_gpu_hours", "type": "quantitative"}, {"field": "high_gpu_hours"}
    return {"mark": mark, "encoding": {"x": _DAYS, "y": y, "y2": y2}}


def _held(rows: Sequence[Mapping[str, Any]], model: str) -> float:
    return sum(row["held_gpu_hours"] or 0.0 for row in rows if row["gpu_model"] == model)


def _around(row: Mapping[str, Any]) -> dict[str, str]:
    """What stands around a day's point, half a day to either side."""
    noon = timedelta(hours=12)
    day = datetime(row["day"].year, row["day"].month, row["day"].day)
    told = [
        f"{formats.gpu_hours(row[name])} {word}"
        for name, word in (("held_gpu_hours", "held"), ("expected_gpu_hours", "expected"), ("usable_gpu_hours", "usable"))
        if row[name] is not None
    ]
    if row["low_gpu_hours"] is not None and row["high_gpu_hours"] is not None:
        told.append(
            f"{formats.significant(row['low_gpu_hours'])} to {formats.gpu_hours(row['high_gpu_hours'])} on four days of five"
        )
    tip = f"{row['gpu_model'] or 'unknown model'}, {day:%-d %b}: {', '.join(told) or 'unknown'}"
    return {"since": f"{(day - noon).isoformat()}Z", "until": f"{(day + noon).isoformat()}Z", "tip": tip}
