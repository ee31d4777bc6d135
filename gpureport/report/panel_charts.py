"""Charts of the second screen as static SVG; colours are variables of the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpureport import formats
from gpureport.report.charts import svg
from gpureport.report.tips import TIP

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OWNERS_SHOWN = 15
QUOTAS_SHOWN = 20
_PROMISES = (("guaranteed", "guaranteed"), ("demanded", "asked for"), ("delivered", "delivered"))
_BESIDE = {"width": 420, "height": {"step": 26}, "padding": {"left": 30, "right": 60, "top": 2, "bottom": 2}}
"""Bars a line each, with room for words beside them where a reader's letters are wider than ours."""


def week(rows: Sequence[Mapping[str, Any]]) -> str:
    """Weekdays by hours; how dark a field is says which part of the GPUs was held and idle, of those of which that is known."""
    cells: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        sums = cells.setdefault((row["weekday"], row["hour_of_day"]), [0.0, 0.0])
        sums[0] += row["allocated_idle_gpu_hours"]
        sums[1] += row["usable_gpu_hours"] - row["unnamed_gpu_hours"]
    values: list[dict[str, Any]] = [
        {"weekday": WEEKDAYS[day - 1], "hour": hour, "share": round(idle / usable, 4), "tip": _hour(day, hour, idle, usable)}
        for (day, hour), (idle, usable) in cells.items()
    ]
    quiet = {"title": None, "grid": False, "domain": False, "ticks": False}
    largest = max(value["share"] for value in values) or 1.0
    return svg(
        {
            "data": {"values": values},
            "width": 620,
            "height": 190,
            "mark": {"type": "rect", "color": "var(--idle)", "stroke": "var(--line)", "strokeWidth": 1, "aria": True},
            "encoding": {
                "x": {"field": "hour", "type": "ordinal", "axis": {**quiet, "labelAngle": 0}},
                "y": {"field": "weekday", "type": "ordinal", "sort": list(WEEKDAYS), "axis": quiet},
                "fillOpacity": {
                    "field": "share", "type": "quantitative", "scale": {"domain": [0, largest], "range": [0, 1]}, "legend": None
                },
                "description": TIP,
            },
        }
    )  # fmt: skip


def _hour(day: int, hour: int, idle: float, usable: float) -> str:
    share = formats.percent(idle / usable)
    return f"{WEEKDAYS[day - 1]} {hour:02d}:00: {share} held and idle, {formats.significant(idle)} of {formats.gpu_hours(usable)}"


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
        part = formats.percent(hours / whole)
        values[-1]["tip"] = f"{name}: {formats.gpu_hours(hours)} held and idle, {part} of all; added up from the top {share} %"
    y = {"field": "order", "type": "ordinal", "axis": None}
    return svg(
        {
            "data": {"values": values},
            **_BESIDE,
            "layer": [
                {
                    "mark": {"type": "bar", "color": "var(--idle)", "height": 14, "aria": True},
                    "encoding": {"y": y, "x": {"field": "hours", "type": "quantitative", "axis": None}, "description": TIP},
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
    colours = {"domain": ["amount", "more", "less"], "range": ["var(--free)", "var(--effective)", "var(--idle)"]}
    bar = {
        "mark": {"type": "bar", "height": 14, "aria": True},
        "encoding": {
            "y": {"field": "order", "type": "ordinal", "axis": None},
            "x": {"field": "from", "type": "quantitative", "axis": None},
            "x2": {"field": "to"},
            "color": {"field": "kind", "type": "nominal", "scale": colours, "legend": None},
            "description": TIP,
        },
    }
    values = _bridge_bars([(step, hours) for (_, step), hours in sorted(summed.items())])
    return svg(
        {**_BESIDE, "data": {"values": values}, "layer": [bar, _text("name", "right", 0, -8), _text("told", "left", None, 8)]}
    )


def _bridge_bars(steps: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    """A bar for each amount from 0, and for each step that is not 0 from where the one before ended."""
    bars, level = [], 0.0
    for order, (step, hours) in enumerate(steps):
        is_amount = step in ("before", "after")
        start, level = (0.0, hours) if is_amount else (level, level + hours)
        if is_amount or hours:
            bars.append({"order": order, "from": start, "hours": max(start, level), "to": level, **_step_told(step, hours)})
    return bars


def _step_told(step: str, hours: float) -> dict[str, str]:
    """What a bar is called and coloured by."""
    is_amount = step in ("before", "after")
    kind = "amount" if is_amount else "more" if hours >= 0 else "less"
    told = formats.significant(hours) if is_amount or hours < 0 else f"+{formats.significant(hours)}"
    name = formats.words(step)
    return {"kind": kind, "name": name, "told": told, "tip": f"{name}: {told} GPU-h"}


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
            "tip": _quota(row),
        }
        for order, row in enumerate(ranked)
    ]
    y = {"field": "order", "type": "ordinal", "axis": None}

    def bar(field: str, colour: str, height: int) -> dict[str, Any]:
        x = {"field": field, "type": "quantitative", "axis": {"title": "GPU-h", "tickCount": 5, "domain": False}}
        mark = {"type": "bar", "color": colour, "height": height, "aria": True}
        return {"mark": mark, "encoding": {"y": y, "x": x, "description": TIP}}

    mark = {
        "mark": {"type": "tick", "color": "var(--ink)", "thickness": 2, "size": 20},
        "encoding": {"y": y, "x": {"field": "guaranteed", "type": "quantitative"}},
    }
    layers = [bar("hours", "var(--free)", 18), bar("delivered", "var(--effective)", 8), mark, _text("name", "right", 0, -8)]
    return svg({**_BESIDE, "data": {"values": values}, "layer": layers})


def _quota(row: Mapping[str, Any]) -> str:
    told = (f"{formats.gpu_hours(row[f'{name}_gpu_hours'])} {word}" for name, word in _PROMISES)
    return f"{row['quota']}, {row['resource']}: {', '.join(told)}"
