"""All signals of a device in common rows: the common refinement of their step functions, split at full hours.

Signals of one scrape have the same times, so a row is a scrape. Otherwise a row starts at every start or end of any signal's
interval, and each value is combined with the others in force. Series outside of device columns have their own rows
(``LongRows``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.intervals import Intervals, StepFallback, Times, Values, distinct, growth, intervals
from gpureport.collect.shape.physics import power_over
from gpureport.values.tables import SIGNAL_BY_NAME
from gpureport.values.window import HOUR_MS, Window


@dataclass
class DeviceRows:
    """Rows of one device: start times, lengths and columns (NaN = null), all of one length."""

    starts_ms: Times
    held_ms: Times
    is_carried: NDArray[np.bool_]
    is_guessed: NDArray[np.bool_]
    joined_count: NDArray[np.int16]
    columns: dict[str, Values] = field(default_factory=dict)
    joined_by_signal: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.starts_ms.size)


@dataclass(frozen=True)
class Grid:
    """Signals with the same times, and the index of the sample in force for each row."""

    intervals: Intervals
    sample: NDArray[np.int64]
    is_held: NDArray[np.bool_]
    is_own: NDArray[np.bool_]


def device_rows(
    points: Mapping[str, Points], fallback_step_ms: Mapping[str, StepFallback], window: Window, first_seen_ms: int
) -> DeviceRows:
    """Return one device's rows in the window from its signals' points. Every signal has at least one point."""
    shared = _by_instants(points)
    found = [intervals(points[names[0]].times_ms, points[names[0]].stale_ms, fallback_step_ms[names[0]]) for names in shared]
    starts, ends = row_bounds(found, window)
    grids = [grid_of(each, starts) for each in found]
    kept = np.logical_or.reduce([grid.is_held for grid in grids])
    rows = _empty_rows(grids, starts, ends, kept)
    for names, grid in zip(shared, grids, strict=True):
        _add_signals(rows, {name: points[name] for name in names}, grid, kept)
    if rows.count and "energy_joules" in points and "power_watts" in points:
        _subtract_growth_before_window(rows, points, fallback_step_ms, window.start_ms)
    if "xid_code" in points:
        rows.columns["xid_event_code"] = _xid_events(points["xid_code"], rows, first_seen_ms)
    return rows


def _by_instants(points: Mapping[str, Points]) -> list[list[str]]:
    """Group signal names by equal times and markers."""
    groups: list[list[str]] = []
    for name, each in points.items():
        for group in groups:
            if each.has_times_of(points[group[0]]):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def row_bounds(found: list[Intervals], window: Window) -> tuple[Times, Times]:
    """Return starts and ends of all candidate rows in the window."""
    low = max(window.start_ms, min(int(each.times_ms[0]) for each in found))
    high = min(window.end_ms, max(int(each.ends_ms[-1]) for each in found))
    if low >= high:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    hours = np.arange(-(-low // HOUR_MS) * HOUR_MS, high, HOUR_MS)
    # An interval that ends at the next sample adds no bound, because that sample's time already is one.
    marks = [part for each in found for part in (each.times_ms, each.ends_ms[~each.is_linked])]
    bounds = distinct([np.array([low, high]), hours, *marks])
    bounds = bounds[(bounds >= low) & (bounds <= high)]
    return bounds[:-1], bounds[1:]


def grid_of(found: Intervals, starts: Times) -> Grid:
    """Return the sample in force at each row's start."""
    from gpureport.collect.shape.loops import samples_in_force

    return Grid(found, *samples_in_force(found.times_ms, found.ends_ms, starts))


def _empty_rows(grids: list[Grid], starts: Times, ends: Times, kept: NDArray[np.bool_]) -> DeviceRows:
    is_own = np.logical_or.reduce([grid.is_own for grid in grids])[kept]
    guessed = np.logical_or.reduce([grid.intervals.is_guessed[grid.sample] & grid.is_held for grid in grids])[kept]
    count = int(kept.sum())
    columns = {"is_energy_refused": np.zeros(count)}
    return DeviceRows(starts[kept], (ends - starts)[kept], ~is_own, guessed, np.zeros(count, np.int16), columns)


def _add_signals(rows: DeviceRows, points: Mapping[str, Points], grid: Grid, kept: NDArray[np.bool_]) -> None:
    """Add the columns of the signals on one grid."""
    sample, is_held, is_own = grid.sample[kept], grid.is_held[kept], grid.is_own[kept]
    joined = is_held & ~is_own & ~rows.is_carried
    rows.joined_count += len(points) * joined.astype(np.int16)
    joined_count, is_whole = int(joined.sum()), bool(is_held.all())
    for name, each in points.items():
        rows.joined_by_signal[name] = joined_count
        # A refused counter value counts as missing, so that another signal is used (power, for energy).
        values = each.values if each.refused is None else np.where(np.isnan(each.refused), each.values, np.nan)
        rows.columns[name] = values[sample] if is_whole else np.where(is_held, values[sample], np.nan)
        signal = SIGNAL_BY_NAME[name]
        if signal.kind == "counter":
            increase, gap_increase = growth(each.values, grid.intervals.is_linked, each.refused)
            rows.columns[signal.increase_name] = _split_increase(increase, grid, sample, is_held, rows)
            rows.columns[signal.gap_increase_name] = np.where(is_own, gap_increase[sample], np.nan)
        if name == "energy_joules" and each.refused is not None:
            rows.columns["is_energy_refused"] = (is_held & ~np.isnan(each.refused)[sample]).astype(np.float64)


def _split_increase(grown: Values, grid: Grid, sample: NDArray[np.int64], is_held: NDArray[np.bool_], rows: DeviceRows) -> Values:
    """Split each sample's increase over its rows in proportion to their lengths."""
    length = grid.intervals.ends_ms[sample] - grid.intervals.times_ms[sample]
    increase = np.where(is_held, grown[sample], np.nan)
    is_cut = rows.held_ms != length
    increase[is_cut] *= rows.held_ms[is_cut] / length[is_cut]
    return increase


def _subtract_growth_before_window(
    rows: DeviceRows, points: Mapping[str, Points], fallback_step_ms: Mapping[str, StepFallback], start_ms: int
) -> None:
    """Subtract the part of a gap's growth before the window, by power: the previous day counts it.

    Growth over a reset is a lower bound. Where power shows at least as much, only power counts.
    """
    counter = points["energy_joules"]
    first = int(np.searchsorted(counter.times_ms, start_ms))
    row = int(np.searchsorted(rows.starts_ms, counter.times_ms[first])) if 0 < first < counter.count else rows.count
    gap = rows.columns["energy_joules_gap_increase"]
    if row == rows.count or np.isnan(gap[row]):
        return
    joules = power_over(points["power_watts"], fallback_step_ms["power_watts"])
    before, after = counter.times_ms[first - 1 : first + 1].tolist()
    held = intervals(counter.times_ms, counter.stale_ms, fallback_step_ms["energy_joules"])
    # The previous day uses power in place of the counter only where power continues after the counter's last interval.
    counted = joules(before, start_ms) if joules(int(held.ends_ms[first - 1]), start_ms) else 0.0
    is_reset = counter.values[first] < counter.values[first - 1]
    gap[row] = np.nan if counted and is_reset and counted + joules(start_ms, after) >= gap[row] else max(0.0, gap[row] - counted)


def _xid_events(points: Points, rows: DeviceRows, first_seen_ms: int) -> Values:
    """Return the code at each row where a new non-zero code appears.

    A code at its exporter's first sample is not an event. A code that first appears later is: DCGM 4.5.3 and later show no
    series until the first XID (dcgm-exporter 700).
    """
    codes = points.values
    before = np.append(codes[0] if points.times_ms[0] <= first_seen_ms else 0.0, codes[:-1])
    is_event = (codes != 0) & (codes != before)
    events = np.full(rows.count, np.nan)
    at = np.searchsorted(rows.starts_ms, points.times_ms[is_event])
    for row, instant, code in zip(at, points.times_ms[is_event], codes[is_event], strict=True):
        if row < rows.count and rows.starts_ms[row] == instant:
            events[row] = code
    return events


@dataclass(frozen=True)
class LongRows:
    """Rows of one series in the window; NaN = null in the growth columns."""

    starts_ms: Times
    held_ms: Times
    values: Values
    increase: Values
    gap_increase: Values
    is_carried: NDArray[np.bool_]


def long_rows(points: Points, is_counter: bool, is_state: bool, fallback: StepFallback, window: Window) -> LongRows:
    """Return one series' samples as intervals. Equal consecutive values of a state are merged within an hour."""
    found = intervals(points.times_ms, points.stale_ms, fallback)
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
        increase, gap_increase = growth(points.values, grid.intervals.is_linked, points.refused)
        increase = increase[sample] * (held / (grid.intervals.ends_ms[sample] - grid.intervals.times_ms[sample]))
        gap_increase = np.where(is_own, gap_increase[sample], np.nan)
    return LongRows(starts[kept], held, points.values[sample], increase, gap_increase, ~is_own)


def _joined(rows: LongRows) -> LongRows:
    ends = rows.starts_ms + rows.held_ms
    same = (rows.values[1:] == rows.values[:-1]) & (rows.starts_ms[1:] == ends[:-1])
    same &= rows.starts_ms[1:] // HOUR_MS == rows.starts_ms[:-1] // HOUR_MS
    # Merged growth is a sum, so rows with known and unknown growth stay apart, and growth over a gap starts a row.
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
