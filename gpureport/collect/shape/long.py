"""Series that are no device's: each sample an interval, cut at full hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.spans import StepFallback, Times, Values, growth, spans
from gpureport.collect.shape.wide import Grid, grid_of, row_bounds
from gpureport.values.window import HOUR_MS, Window


@dataclass(frozen=True)
class LongRows:
    """Rows of one series within the window; NaN = null in the growth columns."""

    starts_ms: Times
    held_ms: Times
    values: Values
    increase: Values
    gap_increase: Values
    is_carried: NDArray[np.bool_]


def long_rows(points: Points, is_counter: bool, is_state: bool, fallback: StepFallback, window: Window) -> LongRows:
    """One series' samples as intervals; of a state's equal values in a row within an hour one interval is kept."""
    found = spans(points.times_ms, points.stale_ms, fallback)
    starts, ends = row_bounds([found], window)
    grid = grid_of(found, starts)
    rows = _rows(points, is_counter, grid, starts, ends)
    return _joined(rows) if is_state else rows


def _rows(points: Points, is_counter: bool, grid: Grid, starts: Times, ends: Times) -> LongRows:
    kept = grid.is_held
    sample, is_own = grid.sample[kept], grid.is_own[kept]
    held = (ends - starts)[kept]
    increase = gap_increase = np.full(sample.size, np.nan)
    if is_counter:
        grown = growth(points.values, grid.spans.is_linked, points.refused)
        increase = grown.increase[sample] * (held / (grid.spans.ends_ms[sample] - grid.spans.times_ms[sample]))
        gap_increase = np.where(is_own, grown.gap_increase[sample], np.nan)
    return LongRows(starts[kept], held, points.values[sample], increase, gap_increase, ~is_own)


def _joined(rows: LongRows) -> LongRows:
    ends = rows.starts_ms + rows.held_ms
    same = (rows.values[1:] == rows.values[:-1]) & (rows.starts_ms[1:] == ends[:-1])
    same &= rows.starts_ms[1:] // HOUR_MS == rows.starts_ms[:-1] // HOUR_MS
    # Growth is added up over what is joined, so known and unknown growth stay apart, and growth over a gap begins a row.
    same &= np.isnan(rows.increase[1:]) == np.isnan(rows.increase[:-1])
    same &= np.isnan(rows.gap_increase[1:])
    first = np.flatnonzero(np.concatenate([[True], ~same])) if rows.values.size else np.empty(0, np.int64)
    last = np.append(first[1:] - 1, rows.values.size - 1) if first.size else first
    return LongRows(
        rows.starts_ms[first],
        ends[last] - rows.starts_ms[first],
        rows.values[first],
        np.add.reduceat(rows.increase, first) if first.size else rows.increase,
        rows.gap_increase[first],
        rows.is_carried[first],
    )
