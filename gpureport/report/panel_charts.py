"""Charts of the second screen as static SVG; colours are variables of the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gpureport import formats
from gpureport.report.charts import svg, time_axis

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
POINTS_MAX = 372
"""A longer course has steps of several hours: half a month's points are what a page's width can show."""
OWNERS_SHOWN = 15
QUOTAS_SHOWN = 20
_BESIDE = {"width": 420, "height": {"step": 26}, "padding": {"left": 30, "right": 60, "top": 2, "bottom": 2}}
"""Bars a line each, with room for words beside them where a reader's letters are wider than ours."""
_PARTS = (
    # figure of report.gpu_hour_course, colour
    ("usable_gpu_hours", "var(--free)"),
    ("held_gpu_hours", "var(--idle)"),
    ("active_gpu_hours", "var(--ineffective)"),
    ("effective_gpu_hours", "var(--effective)"),
)


def supply(rows: Sequence[Mapping[str, Any]], waiting: Mapping[datetime, float]) -> str:
    """Areas within each other: GPUs usable, held, active, effective; ``waiting``, units by hour, a line on top of held."""
    by_hour: dict[datetime, list[float]] = {}
    for row in rows:
        sums = by_hour.setdefault(row["hour_start_at"], [0.0] * len(_PARTS))
        for number, (name, _) in enumerate(_PARTS):
            sums[number] += row[name]
    points = _closed([_point(start, found, waiting) for start, found in _steps(by_hour)], max(by_hour) + timedelta(hours=1))
    layers = [_area(number, colour) for number, (_, colour) in enumerate(_PARTS)]
    return svg(
        {
            "data": {"values": points},
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
            "layer": [*layers, *([_line()] if waiting else [])],
        }
    )


def _steps(by_hour: Mapping[datetime, list[float]]) -> list[tuple[datetime, list[tuple[datetime, list[float]]]]]:
    """The hours from the first to the last in steps of equal length; hours that were not seen are absent from theirs."""
    first, last = min(by_hour), max(by_hour)
    count = round((last - first) / timedelta(hours=1)) + 1
    hours = -(-count // POINTS_MAX)
    starts = [first + timedelta(hours=hours * number) for number in range(-(-count // hours))]
    inside = ([at for at in (start + timedelta(hours=number) for number in range(hours)) if at in by_hour] for start in starts)
    return [(start, [(at, by_hour[at]) for at in found]) for start, found in zip(starts, inside, strict=True)]


def _point(start: datetime, hours: Sequence[tuple[datetime, list[float]]], waiting: Mapping[datetime, float]) -> dict[str, Any]:
    """Means over the step's hours; None, a gap, where none was seen."""
    point: dict[str, Any] = {"at": f"{start.isoformat()}Z"}
    for number in range(len(_PARTS)):
        point[f"y{number}"] = _mean([found[number] for _, found in hours])
    asked = [found[1] + waiting[at] for at, found in hours if at in waiting]
    return {**point, "waiting": _mean(asked)}


def _closed(points: list[dict[str, Any]], end: datetime) -> list[dict[str, Any]]:
    """With the last step's values once more at its end: a step is drawn up to the next point."""
    return [*points, {**points[-1], "at": f"{end.isoformat()}Z"}]


def _mean(found: Sequence[float]) -> float | None:
    return round(sum(found) / len(found), 3) if found else None


def _area(number: int, colour: str) -> dict[str, Any]:
    return {
        "mark": {"type": "area", "color": colour, "interpolate": "step-after", "invalid": "break-paths-show-domains"},
        "encoding": {"y": {"field": f"y{number}", "type": "quantitative", "axis": _axis("GPUs")}},
    }


def _line() -> dict[str, Any]:
    mark = {"type": "line", "color": "var(--grave)", "strokeWidth": 1.5, "strokeDash": [4, 2], "interpolate": "step-after"}
    return {
        "mark": {**mark, "invalid": "break-paths-show-domains"},
        "encoding": {"y": {"field": "waiting", "type": "quantitative", "axis": _axis("GPUs")}},
    }


def _axis(title: str) -> dict[str, Any]:
    return {"title": title, "tickCount": 5, "domain": False, "ticks": False}


def week(rows: Sequence[Mapping[str, Any]]) -> str:
    """Weekdays by hours; how dark a field is says which part of the usable GPUs was held and idle."""
    cells: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        sums = cells.setdefault((row["weekday"], row["hour_of_day"]), [0.0, 0.0])
        sums[0] += row["allocated_idle_gpu_hours"]
        sums[1] += row["usable_gpu_hours"]
    values: list[dict[str, Any]] = [
        {"weekday": WEEKDAYS[day - 1], "hour": hour, "share": round(idle / usable, 4)}
        for (day, hour), (idle, usable) in cells.items()
    ]
    quiet = {"title": None, "grid": False, "domain": False, "ticks": False}
    largest = max(value["share"] for value in values) or 1.0
    return svg(
        {
            "data": {"values": values},
            "width": 620,
            "height": 190,
            "mark": {"type": "rect", "color": "var(--idle)", "stroke": "var(--line)", "strokeWidth": 1},
            "encoding": {
                "x": {"field": "hour", "type": "ordinal", "axis": {**quiet, "labelAngle": 0}},
                "y": {"field": "weekday", "type": "ordinal", "sort": list(WEEKDAYS), "axis": quiet},
                "fillOpacity": {
                    "field": "share", "type": "quantitative", "scale": {"domain": [0, largest], "range": [0, 1]}, "legend": None
                },
            },
        }
    )  # fmt: skip


def pareto(rows: Sequence[Mapping[str, Any]]) -> str:
    """A bar a namespace, the largest first, and their running sum as part of all; those beyond the first stand together."""
    whole = sum(row["idle_gpu_hours"] for row in rows)
    told = [(row["namespace"], row["idle_gpu_hours"]) for row in rows[:OWNERS_SHOWN]]
    if len(rows) > OWNERS_SHOWN:
        told.append((f"{len(rows) - OWNERS_SHOWN:,} others", sum(row["idle_gpu_hours"] for row in rows[OWNERS_SHOWN:])))
    values, so_far = [], 0.0
    for order, (name, hours) in enumerate(told):
        so_far += hours
        share = formats.percent_points(100 * so_far / whole)
        values.append({"order": order, "name": name, "hours": hours, "told": f"{formats.significant(hours)} GPU-h ({share} %)"})
    y = {"field": "order", "type": "ordinal", "axis": None}
    return svg(
        {
            "data": {"values": values},
            **_BESIDE,
            "layer": [
                {
                    "mark": {"type": "bar", "color": "var(--idle)", "height": 14},
                    "encoding": {"y": y, "x": {"field": "hours", "type": "quantitative", "axis": None}},
                },
                _text("name", "right", 0, -8),
                _text("told", "left", None, 8),
            ],
        }
    )


def _text(field: str, align: str, at: float | None, shift: float) -> dict[str, Any]:
    """Words beside the bars: at a place of the axis, or at each bar's end."""
    x = {"datum": at, "type": "quantitative"} if at is not None else {"field": "hours", "type": "quantitative"}
    return {
        "mark": {
            "type": "text",
            "align": align,
            "baseline": "middle",
            "dx": shift,
            "color": "var(--ink)",
            "fontSize": 12,
            "limit": 260,
        },
        "encoding": {
            "y": {"field": "order", "type": "ordinal", "axis": None},
            "x": x,
            "text": {"field": field, "type": "nominal"},
        },
    }


def bridge(rows: Sequence[Mapping[str, Any]]) -> str:
    """From the first amount to the last over steps that add up; models and clusters added."""
    summed: dict[tuple[int, str], float] = {}
    for row in rows:
        key = (row["position"], row["step"])
        summed[key] = summed.get(key, 0.0) + row["gpu_hours"]
    values, level = [], 0.0
    for order, ((_, step), hours) in enumerate(sorted(summed.items())):
        is_amount = step in ("before", "after")
        start = 0.0 if is_amount else level
        level = hours if is_amount else level + hours
        kind = "amount" if is_amount else "more" if hours >= 0 else "less"
        if is_amount or hours:
            told = formats.significant(hours) if is_amount or hours < 0 else f"+{formats.significant(hours)}"
            values.append(
                {
                    "order": order,
                    "name": formats.words(step),
                    "from": start,
                    "hours": max(start, level),
                    "to": level,
                    "kind": kind,
                    "told": told,
                }
            )
    colours = {"domain": ["amount", "more", "less"], "range": ["var(--free)", "var(--effective)", "var(--idle)"]}
    bar = {
        "mark": {"type": "bar", "height": 14},
        "encoding": {
            "y": {"field": "order", "type": "ordinal", "axis": None},
            "x": {"field": "from", "type": "quantitative", "axis": None},
            "x2": {"field": "to"},
            "color": {"field": "kind", "type": "nominal", "scale": colours, "legend": None},
        },
    }
    return svg(
        {**_BESIDE, "data": {"values": values}, "layer": [bar, _text("name", "right", 0, -8), _text("told", "left", None, 8)]}
    )


def trend(rows: Sequence[Mapping[str, Any]]) -> str:
    """By model, days: held and usable as lines, from then on what is expected within a band."""
    named = ("held_gpu_hours", "usable_gpu_hours", "low_gpu_hours", "expected_gpu_hours", "high_gpu_hours")
    values = [
        {"model": row["gpu_model"] or "unknown model", "day": row["day"].isoformat(), **{name: row[name] for name in named}}
        for row in rows
        if row["kind"] != "left out"
    ]
    x = {"field": "day", "type": "temporal", "scale": {"type": "utc"}, "axis": {"title": None, "grid": False, "format": "%-d %b"}}

    def line(name: str, colour: str, dash: Sequence[int]) -> dict[str, Any]:
        mark = {"type": "line", "color": colour, "strokeWidth": 1.5, "strokeDash": dash, "invalid": "break-paths-show-domains"}
        return {"mark": mark, "encoding": {"x": x, "y": {"field": name, "type": "quantitative", "axis": _axis("GPU-h a day")}}}

    band = {
        "mark": {"type": "area", "color": "var(--ineffective)", "opacity": 0.6, "invalid": "break-paths-show-domains"},
        "encoding": {"x": x, "y": {"field": "low_gpu_hours", "type": "quantitative"}, "y2": {"field": "high_gpu_hours"}},
    }
    layers = [
        band,
        line("usable_gpu_hours", "var(--soft)", [2, 2]),
        line("held_gpu_hours", "var(--effective)", [1, 0]),
        line("expected_gpu_hours", "var(--idle)", [5, 3]),
    ]
    facet = {
        "row": {
            "field": "model",
            "type": "nominal",
            "title": None,
            "header": {"labelAngle": 0, "labelAlign": "left", "labelOrient": "top"},
        }
    }
    return svg(
        {
            "data": {"values": values},
            "facet": facet,
            "spec": {"width": 560, "height": 110, "layer": layers},
            "resolve": {"scale": {"y": "independent"}},
        }
    )


def bullets(rows: Sequence[Mapping[str, Any]]) -> str:
    """A quota and resource a line: delivered over demanded, and a mark at what is guaranteed."""
    is_one = len({row["resource"] for row in rows}) == 1
    ranked = sorted(rows, key=lambda row: -max(row["guaranteed_gpu_hours"], row["demanded_gpu_hours"]))[:QUOTAS_SHOWN]
    values = [
        {
            "order": order,
            "name": row["quota"] if is_one else f"{row['quota']}, {row['resource']}",
            "hours": row["demanded_gpu_hours"],
            "delivered": row["delivered_gpu_hours"],
            "guaranteed": row["guaranteed_gpu_hours"],
        }
        for order, row in enumerate(ranked)
    ]
    y = {"field": "order", "type": "ordinal", "axis": None}

    def bar(field: str, colour: str, height: int) -> dict[str, Any]:
        x = {"field": field, "type": "quantitative", "axis": {"title": "GPU-h", "tickCount": 5, "domain": False}}
        return {"mark": {"type": "bar", "color": colour, "height": height}, "encoding": {"y": y, "x": x}}

    mark = {
        "mark": {"type": "tick", "color": "var(--ink)", "thickness": 2, "size": 20},
        "encoding": {"y": y, "x": {"field": "guaranteed", "type": "quantitative"}},
    }
    layers = [bar("hours", "var(--free)", 18), bar("delivered", "var(--effective)", 8), mark, _text("name", "right", 0, -8)]
    return svg({**_BESIDE, "data": {"values": values}, "layer": layers})
