"""From instants to intervals: how long a sample holds, and how a counter grew meanwhile.

A sample holds until the next one, at most three median steps; the last one holds a single step; a staleness marker ends
it earlier. The median step is the hour's own (or a neighbouring hour's, if larger), so it does not depend on how the
samples were fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpureport.window import HOUR_MS

GAP_STEPS = 3
MIN_STEPS = 3
GUESSED_STEP_MS = 60_000

Times = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


def distinct(arrays: Sequence[Times]) -> Times:
    """The distinct instants of sorted arrays, sorted; merging sorted runs beats hashing or sorting anew."""
    if not arrays:
        return np.empty(0, np.int64)
    merged = arrays[0] if len(arrays) == 1 else np.sort(np.concatenate(arrays), kind="stable")
    repeats = merged[1:] == merged[:-1]
    return merged[np.append(True, ~repeats)] if repeats.any() else merged


def is_same(one: Times, other: Times) -> bool:
    """Whether two series have the same instants; most that do share the array."""
    return one is other or np.array_equal(one, other)


def is_among(instants_ms: Times, times_ms: Times) -> Flags:
    """Which of the instants are among sorted times."""
    if times_ms.size == 0:
        return np.zeros(instants_ms.size, np.bool_)
    at = np.minimum(np.searchsorted(times_ms, instants_ms), times_ms.size - 1)
    return np.asarray(times_ms[at] == instants_ms)


StepFallback = Callable[[], int | None]
"""Gives the step (ms) of hours with too few samples of their own, or None; asked only where it is needed."""


@dataclass(frozen=True)
class Spans:
    """For each sample at ``times_ms``: in force until ``ends_ms``; ``is_linked`` where the next sample follows without a gap."""

    times_ms: Times
    ends_ms: Times
    is_linked: Flags
    is_guessed: Flags


def spans(times_ms: Times, stale_ms: Times, fallback_step_ms: StepFallback) -> Spans:
    """Spans of one signal's sorted, distinct instants; ``fallback_step_ms`` serves hours with too few steps."""
    step, guessed = hourly_steps(times_ms, fallback_step_ms)
    reach = times_ms + GAP_STEPS * step
    reach[-1] = times_ms[-1] + step[-1]
    following = np.append(times_ms[1:], np.iinfo(np.int64).max)
    ends = np.minimum(reach, following)
    if stale_ms.size:
        marker = np.searchsorted(stale_ms, times_ms, side="right")
        ends = np.minimum(ends, np.append(stale_ms, np.iinfo(np.int64).max)[marker])
    return Spans(times_ms, ends, ends == following, guessed)


def hourly_steps(times_ms: Times, fallback_step_ms: StepFallback) -> tuple[Times, Flags]:
    """The median step in force at each sample (ms), and whether it had to be guessed."""
    count = times_ms.size
    hours = times_ms // HOUR_MS
    medians, enough = _medians_by_hour(np.diff(times_ms), hours[:-1] - hours[0], int(hours[-1] - hours[0]) + 1)
    padded = np.concatenate([[0], np.where(enough, medians, 0), [0]])
    widest = np.maximum(np.maximum(padded[:-2], padded[2:]), padded[1:-1])[hours - hours[0]]
    known = widest > 0
    if known.all():
        return widest, np.zeros(count, np.bool_)
    fallback = fallback_step_ms()
    if fallback is None:
        return np.where(known, widest, GUESSED_STEP_MS), ~known
    return np.where(known, widest, fallback), np.zeros(count, np.bool_)


def _medians_by_hour(steps: Times, hours: Times, hour_count: int) -> tuple[Times, Flags]:
    """Median step of each hour (ms, the mean of the middle two rounded down), and whether it rests on enough steps."""
    if steps.size == 0:
        return np.zeros(hour_count, np.int64), np.zeros(hour_count, np.bool_)
    counts = np.bincount(hours, minlength=hour_count)
    enough = counts >= MIN_STEPS
    shortest = steps.min()
    if shortest == steps.max():
        return np.full(hour_count, shortest), enough
    ordered = np.sort((hours << 40) + steps) & ((1 << 40) - 1)
    first = np.cumsum(counts) - counts
    low, high = first + np.maximum(counts - 1, 0) // 2, first + counts // 2
    last = steps.size - 1
    return (ordered[np.minimum(low, last)] + ordered[np.minimum(high, last)]) // 2, enough


def median_step_ms(step_lists: list[Times]) -> int | None:
    """The median over many signals' steps; None where there are fewer than three."""
    steps = np.concatenate([np.diff(times) for times in step_lists]) if step_lists else np.empty(0, np.int64)
    return int(np.median(steps)) if steps.size >= MIN_STEPS else None


@dataclass(frozen=True)
class Growth:
    """Per sample: ``increase`` to the next one (NaN where unknown) and ``gap_increase`` that ended here (NaN where none)."""

    increase: Values
    gap_increase: Values


def growth(values: Values, is_linked: Flags) -> Growth:
    """A counter's growth; over a reset the value after it is a lower bound and counts as growth over a gap.

    3, 4, 1, 2 without gaps: increase 1, –, 1, – and gap_increase –, –, 1, –.
    """
    change = np.diff(values)
    is_reset = change < 0
    increase = np.full(values.size, np.nan)
    gap_increase = np.full(values.size, np.nan)
    plain = is_linked[:-1] & ~is_reset
    increase[:-1][plain] = change[plain]
    gap_increase[1:] = np.where(is_reset, values[1:], np.where(plain, np.nan, change))
    return Growth(increase, gap_increase)
