"""Static drawings of the page: the ledger's bar, the trend, sparklines. Their colors are in the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup, escape

from gpureport.report.page.words import BUCKETS, Hours
from gpureport.values.text import formats

_STEPS = (1, 2, 2.5, 5, 10, 20)


@dataclass(frozen=True)
class Column:
    """A day or an hour of the trend: GPUs on average by category, and pending requests above them."""

    label: str
    gpus: Hours
    pending: float = 0.0


def bar(hours: Hours) -> Markup:
    """Draw the categories as one bar; each part has its share as a tooltip."""
    parts, left = [], 0.0
    for bucket in BUCKETS:
        width = 100 * (hours.share(bucket.name) or 0.0)
        if width > 0:
            text = f"{escape(bucket.title)} {formats.percent(hours.share(bucket.name))}"
            parts.append(
                f'<rect class="c-{bucket.name}" x="{left:.3f}%" width="{width:.3f}%" height="100%"><title>{text}</title></rect>'
            )
            left += width
    spoken = ", ".join(f"{each.title} {formats.percent(hours.share(each.name))}" for each in BUCKETS if hours.of(each.name))
    return Markup(f'<svg class="bar" role="img" aria-label="{escape(spoken)}">{"".join(parts)}</svg>')


def spark(values: Sequence[float]) -> Markup:
    """Draw values as a small line; '' for fewer than two values."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    points = " ".join(
        f"{100 * number / (len(values) - 1):.1f},{18 - 16 * (value - low) / ((high - low) or 1):.1f}"
        for number, value in enumerate(values)
    )
    drawn = f'<polyline points="{points}" vector-effect="non-scaling-stroke"/>'
    return Markup(f'<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>')


def trend(columns: Sequence[Column], capacity: float) -> Markup:
    """Draw GPUs by category over time, stacked, with pending requests above; '' for fewer than two columns."""
    if len(columns) < 2:
        return Markup("")
    most = max([capacity, *(each.gpus.capacity + each.pending for each in columns)]) or 1.0
    top = _step(most) * ceil(most / _step(most) - 1e-9)
    width = 100 / len(columns)
    parts = [part for number, each in enumerate(columns) for part in _column(each, number * width, width, top)]
    step = _step(top)
    ticks = [step * number for number in range(round(top / step) + 1)]
    grid = "".join(f'<line class="grid" x1="0" x2="100%" y1="{_y(tick, top)}" y2="{_y(tick, top)}"/>' for tick in ticks)
    cap = "" if not capacity else f'<line class="capacity" x1="0" x2="100%" y1="{_y(capacity, top)}" y2="{_y(capacity, top)}"/>'
    axis = "".join(f'<span style="bottom:{100 * tick / top:.1f}%">{formats.significant(tick)}</span>' for tick in ticks)
    every = max(1, -(-len(columns) // 8))
    labels = "".join(
        f'<span style="left:{number * width:.2f}%">{escape(each.label)}</span>'
        for number, each in enumerate(columns)
        if number % every == 0
    )
    return Markup(
        f'<div class="plot"><div class="axis-y" aria-hidden="true">{axis}</div>'
        f'<svg role="img" aria-label="GPUs on average by use, and pending requests above them">{grid}{"".join(parts)}{cap}</svg>'
        f'<div class="axis-x" aria-hidden="true">{labels}</div></div>'
    )


def _column(column: Column, left: float, width: float, top: float) -> list[str]:
    """Draw one column from the bottom up; pending requests are an outline above the categories."""
    parts = [f"{each.title} {formats.significant(column.gpus.of(each.name))}" for each in BUCKETS if column.gpus.of(each.name)]
    parts += [f"Pending requests {formats.significant(column.pending)}"] if column.pending else []
    title = escape(f"{column.label} (GPUs on average): {', '.join(parts) or 'no data'}")
    parts, height = [], 0.0
    gap = width * 0.07
    for css, gpus in [*((f"c-{each.name}", column.gpus.of(each.name)) for each in BUCKETS), ("pending", column.pending)]:
        if gpus > 0:
            height += gpus
            y, share = 100 * (1 - height / top), 100 * gpus / top
            at = f'x="{left + gap:.2f}%" width="{width - 2 * gap:.2f}%" y="{y:.2f}%" height="{share:.2f}%"'
            parts.append(f'<rect class="{css}" {at}/>')
    return [f"<g><title>{title}</title>{''.join(parts)}</g>"]


def _y(gpus: float, top: float) -> str:
    return f"{100 * (1 - gpus / top):.2f}%"


def _step(value: float) -> float:
    """Return a round step that fits three to six times into a value."""
    if value <= 0:
        return 1.0
    size = 10.0 ** floor(log10(value / 4))
    return next(size * step for step in _STEPS if size * step >= value / 5.5)
