"""Charts as static SVG, drawn by Vega-Lite; colours are variables of the page's style, so that they follow light and dark."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import vl_convert

from gpureport import formats
from gpureport.report.ledger import BUCKETS, Balance, Bucket
from gpureport.report.tips import TIP, bands, ranges, titled

_QUIET = {"title": None, "grid": False, "ticks": False, "domain": False, "labels": False}
_CONFIG = {
    "aria": False,  # the figure around it says what it shows, and a table holds the numbers
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "header": {"labelColor": "var(--ink)", "labelFontSize": 12},
    "axis": {
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 12,  # labels may be wider on a reader's screen than where they were measured
    },
}
_PATH = re.compile(r' d="[^"]*"')
_DECIMALS = re.compile(r"(\.\d)\d+")
"""Tenths of a pixel are enough, and half the size of a page."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SIGNALS = (
    # field of a point, colour, dash
    ("usage", "var(--effective)", [1, 0]),
    ("sm", "var(--idle)", [6, 3]),
    ("memory", "var(--stranded)", [2, 2]),
)
_SIGNAL_WORDS = {"usage": "engine active", "sm": "SMs active", "memory": "memory held"}


_DAY_AXIS = {
    "title": None,
    "labelAngle": 0,
    "labelOverlap": "greedy",
    "labelSeparation": 12,  # a reader's letters may be wider than those that it was laid out with
    "labelExpr": "utcFormat(toDate(datum.value), '%-d %b')",
}


_DAYS_TO_NAME = 3
_CLOCK = (
    "utcFormat(datum.value, utcseconds(datum.value) ? '%H:%M:%S'"
    " : utchours(datum.value) + utcminutes(datum.value) ? '%H:%M' : '%-d %b')"
)


def ledger_bar(balance: Balance) -> str:
    """One bar of a whole capacity, in the order of the buckets; it stretches to the width it is given."""
    values = _values(balance, "")
    spec = {
        "data": {"values": values},
        "width": 1000,
        "height": 40,
        "padding": 0,
        "mark": {"type": "bar", "height": 40, "stroke": "var(--paper)", "strokeWidth": 1, "aria": True},
        "encoding": {
            "x": _stacked("normalize", _QUIET),
            "color": _bucket_colours(),
            "order": {"field": "order"},
            "description": TIP,
        },
    }
    return svg(spec).replace("<svg ", '<svg preserveAspectRatio="none" ', 1)


def days(parts: Sequence[Balance]) -> str:
    """Capacity day by day, stacked by bucket."""
    values = [each for part in parts for each in _values(part, part.value)]
    spec = {
        "data": {"values": values},
        "width": 1000,
        "height": 220,
        "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5, "aria": True},
        "encoding": {
            "x": {"field": "of", "type": "ordinal", "axis": _DAY_AXIS},
            "y": {
                "field": "gpu_hours",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": "GPU-h a day", "tickCount": 5, "domain": False, "ticks": False},
            },
            "color": _bucket_colours(),
            "order": {"field": "order"},
            "description": TIP,
        },
    }
    return svg(spec)


def spark(values: Sequence[float | None]) -> str:
    """A line without axes: the course of one figure over the window."""
    points = [{"at": number, "value": value} for number, value in enumerate(values)]
    spec = {
        "data": {"values": points},
        "width": 160,
        "height": 28,
        "padding": 2,
        "mark": {"type": "line", "color": "var(--effective)", "strokeWidth": 1.5, "invalid": "break-paths-show-domains"},
        "encoding": {
            "x": {"field": "at", "type": "quantitative", "axis": None},
            "y": {"field": "value", "type": "quantitative", "axis": None, "scale": {"zero": True}},
        },
    }
    return svg(spec)


def timeline(points: Sequence[Mapping[str, Any]]) -> str:
    """Shares over time, a line for each signal, broken where nothing was seen; at least two points.

    Points have ``at`` (ISO text) and, as percent or None, ``usage``, ``sm`` and ``memory``.
    """
    known = [signal for signal in _SIGNALS if any(point[signal[0]] is not None for point in points)]
    spec = {
        "data": {"values": list(points)},
        "width": 800,
        "height": 90,
        "encoding": {
            "x": {"field": "at", "type": "temporal", "scale": {"type": "utc"}, "axis": time_axis(_days(points))},
        },
        "layer": [*(_line(*signal) for signal in known), bands(ranges(points, _SIGNAL_WORDS))],
    }
    return svg(spec)


def _days(points: Sequence[Mapping[str, Any]]) -> float:
    times = [datetime.fromisoformat(point["at"]) for point in points]
    return (max(times) - min(times)) / timedelta(days=1)


def time_axis(days: float) -> dict[str, Any]:
    """Days, where there are several; else hours and minutes of UTC, midnight as its day."""
    quiet: dict[str, Any] = {"title": None, "grid": False}
    if days < _DAYS_TO_NAME:
        return {**quiet, "labelExpr": _CLOCK}
    ticks = {"tickCount": {"interval": "day", "step": math.ceil(days / 12)}}
    return {**quiet, "format": "%-d %b", "labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 8, **ticks}


def _line(name: str, colour: str, dash: Sequence[int]) -> dict[str, Any]:
    axis = {"title": "%", "values": [0, 50, 100], "domain": False, "ticks": False}
    return {
        "mark": {
            "type": "line",
            "color": colour,
            "strokeCap": "round",  # an hour between two gaps is a dot
            "strokeDash": list(dash),
            "strokeWidth": 1.5,
            "invalid": "break-paths-show-domains",
        },
        "encoding": {"y": {"field": name, "type": "quantitative", "scale": {"domain": [0, 100]}, "axis": axis}},
    }


def _values(balance: Balance, of: str) -> list[dict[str, Any]]:
    return [
        {
            "of": of,
            "bucket": bucket.name,
            "order": order,
            "gpu_hours": balance.gpu_hours[bucket.name],
            "tip": _tip(balance, bucket),
        }
        for order, bucket in enumerate(BUCKETS)
        if balance.gpu_hours[bucket.name] > 0
    ]


def _tip(balance: Balance, bucket: Bucket) -> str:
    """Its day, if it has one, the bucket, and how much of the capacity is in it."""
    hours = f"{formats.gpu_hours(balance.of(bucket.name))} ({formats.percent(balance.share(bucket.name))})"
    return f"{f'{balance.value}, ' if balance.value else ''}{bucket.title.lower()}: {hours}"


def _stacked(how: str, axis: Mapping[str, Any]) -> dict[str, Any]:
    return {"field": "gpu_hours", "type": "quantitative", "stack": how, "axis": dict(axis)}


def _bucket_colours() -> dict[str, Any]:
    names = [bucket.name for bucket in BUCKETS]
    colours = [f"var(--{name.removeprefix('allocated_').replace('_', '-')})" for name in names]
    return {"field": "bucket", "type": "nominal", "scale": {"domain": names, "range": colours}, "legend": None}


def svg(spec: Mapping[str, Any]) -> str:
    """A Vega-Lite chart, in the page's style, as an SVG element."""
    whole = _drawable({"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "config": _CONFIG, **spec})
    drawn = _PATH.sub(lambda path: _DECIMALS.sub(r"\1", path[0]), titled(str(vl_convert.vegalite_to_svg(whole))))
    # What encloses the drawing says what it shows; its thousand parts are not read out.
    return drawn.replace("<svg ", '<svg aria-hidden="true" ', 1)


def _drawable(part: Any) -> Any:
    """The same with U+FFFD for what no XML may hold: on a control character in a name the drawing would end the whole process."""
    if isinstance(part, str):
        return _NO_XML.sub("\ufffd", part)
    if isinstance(part, Mapping):
        return {name: _drawable(value) for name, value in part.items()}
    return [_drawable(each) for each in part] if isinstance(part, list | tuple) else part
