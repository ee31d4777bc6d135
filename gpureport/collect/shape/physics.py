"""Physical limits of a device. Power and counter growth beyond them are refused, and counted by reason.

An unlikely value is never dropped: the bounds are beyond any board. Contradictory values of a device are removed and counted,
never corrected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.intervals import GAP_STEPS, Flags, StepFallback, Times, Values, hourly_steps, intervals
from gpureport.values.tables import SIGNAL_BY_NAME
from gpureport.values.window import HOUR_MS

if TYPE_CHECKING:
    from gpureport.collect.shape.devices import DeviceSignals
    from gpureport.collect.shape.wide import DeviceRows
    from gpureport.values.catalog import Board

_MARGIN = 1.5
_UNKNOWN_BOUND_WATTS = 3000.0
_LEAST_SHARE = 0.01
"""Share of a board's power below any idle power; also a share of power that a counter's growth always exceeds."""
_HIGHEST_LIMIT = 2.0
_HIGHEST_RATE = {"seconds": 1.05, "count": 1e6}
"""Growth per second by unit. A clock is read some ms before or after its timestamp; no link repeats more packets."""
_STUCK_MS = 600_000
_STUCK_JOULES = 10_000.0
_FAR_BELOW_RATIO = 0.25  # share of an hour's energy by power; sampling cannot explain so large a difference
_COARSER_FACTORS = (1e3, 1e6)  # factors to the previous, coarser unit of the same metric name
_REASONS = ("outlier", "beyond_bound", "backward_step")


def drop_impossible(found: DeviceSignals, board: Board) -> None:
    """Remove impossible values from a device's signals."""
    _drop_out_of_range(found, "power_limit_watts", 1.0, _HIGHEST_LIMIT * board.watts or _UNKNOWN_BOUND_WATTS)
    bound = bound_watts(found.points.get("power_limit_watts"), board.watts)
    least = _LEAST_SHARE * board.watts or 1.0
    _drop_out_of_range(found, "power_watts", least, bound)
    for name, points in list(found.points.items()):
        signal = SIGNAL_BY_NAME[name]
        if signal.kind == "counter":
            is_energy = signal.unit == "joules"
            rate = (bound if is_energy else _HIGHEST_RATE[signal.unit]) / 1000
            power = _power_to_compare(found, points, least) if is_energy else None
            refill_steps = GAP_STEPS if is_energy and "power_watts" in found.points else 0
            found.points[name] = plausible(points, rate, found.fallback[name], found.origin[name].dropped, power, refill_steps)


def can_be_power(points: Points, limit: Points | None, board_watts: float) -> bool:
    """Whether any value is a possible power of the board."""
    least, bound = _LEAST_SHARE * board_watts or 1.0, bound_watts(limit, board_watts)
    return bool(((points.values >= least) & (points.values <= bound)).any())


def bound_watts(limit: Points | None, board_watts: float) -> float:
    """Return the board's largest possible power. The limit is its second largest sample, because a single one may be wrong."""
    shown = 0.0 if limit is None else float(np.sort(limit.values)[-2:][0])
    known = max(shown, board_watts)
    return _MARGIN * known if known > 0 else _UNKNOWN_BOUND_WATTS


def _drop_out_of_range(found: DeviceSignals, name: str, lowest: float, highest: float) -> None:
    """Drop values outside of the range. 0 W is a missing sensor, or another board's sensor counts the power of both."""
    points = found.points.get(name)
    if points is None or lowest <= points.values.min() <= points.values.max() <= highest:
        return
    kept = (points.values >= lowest) & (points.values <= highest)
    found.origin[name].dropped["implausible"] += int((~kept).sum())
    if kept.any():
        found.points[name] = Points(points.times_ms[kept], points.values[kept], points.stale_ms)
    else:
        del found.points[name]


def _power_to_compare(found: DeviceSignals, counter: Points, least: float) -> Points:
    """Return the power for a check of energy; without exported power, the smallest power of the model or of any board."""
    return found.points.get("power_watts") or Points(counter.times_ms, np.full(counter.count, least), counter.stale_ms)


def plausible(
    points: Points, rate: float, fallback: StepFallback, dropped: Counter[str], power: Points | None = None, refill_steps: int = 0
) -> Points:
    """Return a counter without outliers and with impossible growth refused. ``power`` is the same device's power, for energy.

    Exported power covers the time around a reset of up to ``refill_steps`` steps.
    """
    from gpureport.collect.shape.loops import check_counter, is_suspect

    is_slow = is_suspect(points.times_ms, points.values, rate, 0 if power is None else _STUCK_MS, _LEAST_SHARE * rate)
    if not is_slow and (power is None or not _is_far_below(points.times_ms, np.diff(points.values), power).any()):
        return points
    steps, _ = hourly_steps(points.times_ms, fallback)
    in_one_unit = _in_one_unit(points, rate, dropped)
    kept, refused, counts = check_counter(points.times_ms, in_one_unit, steps, rate, refill_steps)
    dropped.update({reason: int(count) for reason, count in zip(_REASONS, counts, strict=True) if count})
    times, values, refused = points.times_ms[kept], in_one_unit[kept], refused[kept]
    if power is not None and (
        stuck := _refuse_stuck(times, values, refused, steps[kept], rate, power, fallback, refill_steps > 0)
    ):
        dropped["stuck"] += stuck
    return Points(times, values, points.stale_ms, refused)


def _in_one_unit(points: Points, rate: float, dropped: Counter[str]) -> Values:
    """Return the values in the finest of their units, where the unit under one name changes by a factor of 1,000 or more.

    Only where impossible growth becomes rarer: a unit finer than the name's unit grows too fast.
    """
    before, after = points.values[:-1], points.values[1:]
    most, power_of_ten = rate * np.diff(points.times_ms), np.zeros(points.count)
    for coarser in _COARSER_FACTORS:
        up, down = after * coarser - before, after - before * coarser
        is_up = (up >= 0) & (up <= most) & (before > coarser * most)
        is_down = (down >= 0) & (down <= most) & (after > coarser * most)
        power_of_ten[1:] += np.log10(coarser) * np.cumsum(is_up.astype(np.int64) - is_down)
    power_of_ten -= power_of_ten.min(initial=0.0)
    if power_of_ten.max(initial=0.0) > np.log10(_COARSER_FACTORS[-1]):  # no units differ so much: the values are garbage
        return points.values
    scaled: Values = points.values * 10**power_of_ten

    def impossible(values: Values) -> int:
        growth = np.diff(values)
        return int(((growth < 0) | (growth > most)).sum())

    if impossible(scaled) >= impossible(points.values):
        return points.values
    dropped["coarser_unit"] += int((scaled != points.values).sum())
    return scaled


def _refuse_stuck(
    times: Times, values: Values, refused: Values, steps: Times, rate: float, power: Points, step: StepFallback, has_power: bool
) -> int:
    """Refuse the growth of a counter that hardly changes while power is drawn. Return the number of its samples.

    A later jump by half of what the counter missed, or more, is the energy of that time, which exported power already has.
    """
    watts = _in_force(power, times)
    growth = np.where(np.diff(values) < 0, values[1:], np.diff(values))  # after a reset, the value itself
    is_still = (growth >= 0) & (growth < _LEAST_SHARE / 1000 * watts * np.diff(times))
    joules, count = power_over(power, step), 0
    for start, end in _runs(is_still):
        if times[end] - times[start] < _STUCK_MS or (missed := joules(int(times[start]), int(times[end]))) < _STUCK_JOULES:
            continue
        refused[start:end] = 0.0
        if end + 1 < times.size:
            jump, step_ms = values[end + 1] - values[end], times[end + 1] - times[end]
            own = watts[end : end + 2].max() * step_ms / 1000 + missed / 2 if has_power else np.inf
            if jump > min(own, rate * (step_ms + steps[end])):
                refused[end] = jump
        count += int((~np.isnan(refused[start : end + 1])).sum())
    is_below = _is_far_below(times, growth, power, np.isnan(refused[:-1]) & (np.diff(times) <= GAP_STEPS * steps[:-1]))
    refused[:-1][is_below] = 0.0
    return count + int(is_below.sum())


def _in_force(power: Points, times: Times) -> Values:
    """Return the power at the time of each sample but the last."""
    return power.values[np.maximum(np.searchsorted(power.times_ms, times[:-1], side="right") - 1, 0)]


def _is_far_below(times: Times, growth: Values, power: Points, is_known: Flags | bool = True) -> Flags:
    """Whether each step is in an hour in which a counter grows far less than power implies."""
    hours = (times[:-1] - times[0] // HOUR_MS * HOUR_MS) // HOUR_MS if times.size > 1 else times[:0]
    by_counter = np.bincount(hours, np.where(is_known, growth, 0.0))
    by_power = np.bincount(hours, np.where(is_known, _in_force(power, times) * np.diff(times) / 1000, 0.0))
    known_ms = np.bincount(hours, np.where(is_known, np.diff(times), 0))
    return ((by_counter < _FAR_BELOW_RATIO * by_power - _STUCK_JOULES) & (known_ms >= _STUCK_MS))[hours] & is_known


def power_over(power: Points, step: StepFallback) -> Callable[[int, int], float]:
    """Return a function for the energy between two times (ms) by the power samples that hold then."""
    held = intervals(power.times_ms, power.stale_ms, step)

    def joules(start_ms: int, end_ms: int) -> float:
        held_ms = np.clip(held.ends_ms, start_ms, end_ms) - np.clip(held.times_ms, start_ms, end_ms)
        return float((held_ms / 1000 * power.values).sum())

    return joules


DEAD_AFTER_MS = HOUR_MS
"""Busy time after which GR_ENGINE_ACTIVE at exactly 0 is a dead signal (dcgm-exporter 662), not an idle GPU."""
_BUSY_UTIL = 0.5
_BUSY_ENGINE = 0.05
_BUSY_POWER = 0.4
_ROUNDING_BYTES = 2 * 1024 * 1024
"""Used, free and total memory are each rounded to MiB."""


def drop_contradictions(rows: DeviceRows) -> dict[str, dict[str, int]]:
    """Remove contradictory values from the rows. Return the number of removed samples by signal and reason."""
    dropped: dict[str, dict[str, int]] = {}
    dead = _is_dead(rows)
    if dead.any():
        dropped["gr_engine_active_ratio"] = {"dead": _set_unknown(rows, "gr_engine_active_ratio", dead)}
    over = _is_over_total(rows)
    if over.any():
        for signal in ("fb_used_bytes", "fb_free_bytes"):
            if signal in rows.columns:
                dropped[signal] = {"over_total": _set_unknown(rows, signal, over)}
    return dropped


def _set_unknown(rows: DeviceRows, signal: str, where: Flags) -> int:
    column = rows.columns[signal]
    taken = where & ~np.isnan(column)
    column[taken] = np.nan
    return int((taken & ~rows.is_carried).sum())


def _is_dead(rows: DeviceRows) -> Flags:
    """Whether each row is in a run of exact zeros with more than an hour of busy GPU by other signals.

    PCIe copies and idle contexts have true zeros: GPU_UTIL may be 100 there, but SM, memory and power show no work.
    """
    dead = np.zeros(rows.count, np.bool_)
    active = rows.columns.get("gr_engine_active_ratio")
    if active is None or not (active == 0).any():
        return dead
    busy_ms = np.where(_is_busy(rows), rows.held_ms, 0)
    for start, end in _runs(active == 0):
        if busy_ms[start:end].sum() >= DEAD_AFTER_MS:
            dead[start:end] = True
    return dead


def _is_busy(rows: DeviceRows) -> Flags:
    evidence = _at_least(rows, "dram_active_ratio", _BUSY_ENGINE) | _at_least(rows, "sm_active_ratio", _BUSY_ENGINE)
    return _at_least(rows, "gpu_util_ratio", _BUSY_UTIL) & (evidence | _draws_power(rows))


def _at_least(rows: DeviceRows, signal: str, bound: float) -> Flags:
    column = rows.columns.get(signal)
    return np.zeros(rows.count, np.bool_) if column is None else column >= bound


def _draws_power(rows: DeviceRows) -> Flags:
    """Whether power is well above idle. Idle is the device's smallest power of the day."""
    power, limit = rows.columns.get("power_watts"), rows.columns.get("power_limit_watts")
    if power is None or limit is None or np.isnan(power).all():
        return np.zeros(rows.count, np.bool_)
    idle = float(np.nanmin(power))
    return np.asarray(power >= idle + _BUSY_POWER * (limit - idle))


def _runs(flags: Flags) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _is_over_total(rows: DeviceRows) -> Flags:
    """Whether used and free memory together exceed the total."""
    used, free, total = (rows.columns.get(f"fb_{name}_bytes") for name in ("used", "free", "total"))
    if used is None or total is None:
        return np.zeros(rows.count, np.bool_)
    together = used if free is None else used + np.where(np.isnan(free), 0.0, free)
    return np.asarray(together > total + _ROUNDING_BYTES)
