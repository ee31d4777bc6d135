"""What stands under the pointer: words of each bar or stretch of a chart as SVG titles, which need no script.

Screen readers are told the whole of a chart by what encloses it, and its numbers by a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpureport import formats

TIP = {"field": "tip", "type": "nominal"}
"""Encoding ``description`` of a mark with ``aria``: the field ``tip`` of each of its values."""
_DESCRIBED = re.compile(r'<path aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"([^>]*?)/>')
_UNHEARD = re.compile(
    r' role="graphics-\w+" aria-roledescription="[^"]*"|<path class="foreground"[^>]* d="" [^>]*/>| opacity="1"'
)
"""What Vega writes for screen readers, who are kept out of the drawing, and what draws nothing."""
STRETCHES_MAX = 28
"""Of a course on a card: there are fifty of them, and each stretch costs a hundred bytes of the page."""


def titled(drawing: str) -> str:
    """A drawing of Vega's with the description of each mark as its title; what is transparent stays in reach (style.css)."""
    told = _DESCRIBED.sub(r"<path\2><title>\1</title></path>", drawing)
    return _UNHEARD.sub("", told).replace(' fill="transparent"', "")


def bands(stretches: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """A layer that draws nothing and says ``tip`` over each stretch of time (``since`` to ``until``) of a course.

    Without ``stretches`` the values of the chart are the stretches.
    """
    time = {"type": "temporal"}
    return {
        **({} if stretches is None else {"data": {"values": list(stretches)}}),
        "mark": {"type": "rect", "color": "transparent", "aria": True},
        "encoding": {
            "x": {"field": "since", **time},
            "x2": {"field": "until"},
            "y": {"value": 0},
            "y2": {"value": "height"},
            "description": TIP,
        },
    }


def ranges(points: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, str]]:
    """Stretches of a course of points (``at``; percent or None by field), each with the lowest and highest of every field.

    ``names`` are the fields and their words. Points are equally far apart and hold until the next; the drawing ends at the last.
    """
    times = [datetime.fromisoformat(point["at"]) for point in points]
    ends = [*times[1:], times[-1] + (times[1] - times[0])]
    count, last = -(-len(points) // STRETCHES_MAX), len(points) - 1
    stretches = []
    for start in range(0, last, count):
        end = start + count if start + count < last else last + 1
        shares = {words: _range([point[field] for point in points[start:end]]) for field, words in names.items()}
        told = ", ".join(f"{words} {share}" for words, share in shares.items())
        tip = f"{moment(times[start])} to {moment(ends[end - 1])}: {told}"
        stretches.append({"since": points[start]["at"], "until": points[min(end, last)]["at"], "tip": tip})
    return stretches


def _range(found: Sequence[float | None]) -> str:
    known = [each for each in found if each is not None]
    if not known:
        return "unknown"
    low, high = (formats.percent_points(each) for each in (min(known), max(known)))
    told = f"{low} %" if low == high else f"{low} to {high} %"
    return told if len(known) == len(found) else f"{told} where known"


def moment(at: datetime) -> str:
    """A time of a chart, in UTC, as its axis names it."""
    return f"{at:%-d %b %H:%M}"
