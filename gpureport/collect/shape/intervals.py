"""Conversion of sample times to intervals: how long each sample holds, and a counter's growth in that time.

A sample holds until the next one, for at most three median steps. The last sample holds for one step. A staleness marker ends the
interval earlier. The median step is the hour's own (or a neighboring hour's, if larger), so it does not depend on how the samples
were fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpureport.values.window import HOUR_MS

GAP_STEPS = 3
MIN_STEPS = 3
GUESSED_STEP_MS = 60_000

Times = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

NO_TIMES: Times = np.empty(0, np.int64)
_NO_VALUES: Values = np.empty(0)


def distinct(arrays: Sequence[Times]) -> Times:
    """Return the distinct times of sorted arrays, sorted."""
    from gpureport.collect.shape.loops import merge_distinct

    if len(arrays) < 2:
        return merge_distinct(arrays[0] if arrays else NO_TIMES, NO_TIMES)
    half = len(arrays) // 2
    return merge_distinct(distinct(arrays[:half]), distinct(arrays[half:]))


def is_same(one: Times, other: Times) -> bool:
    """Whether two series have the same times. Most such series share the array."""
    return one is other or np.array_equal(one, other)


def is_among(instants_ms: Times, times_ms: Times) -> Flags:
    """Whether each of the sorted times is among other sorted times."""
    from gpureport.collect.shape.loops import is_contained

    return is_contained(instants_ms, times_ms)


StepFallback = Callable[[], int | None]
"""Function that returns the step (ms) for hours with too few samples, or None; called only when needed."""


@dataclass(frozen=True)
class Intervals:
    """End of each sample's interval; ``is_linked`` where the next sample follows without a gap."""

    times_ms: Times
    ends_ms: Times
    is_linked: Flags
    is_guessed: Flags


def intervals(times_ms: Times, stale_ms: Times, fallback_step_ms: StepFallback) -> Intervals:
    """Return the intervals of sorted, distinct times. ``fallback_step_ms`` is for hours with too few steps."""
    from gpureport.collect.shape.loops import interval_ends

    step, guessed = hourly_steps(times_ms, fallback_step_ms)
    ends, is_linked = interval_ends(times_ms, step, stale_ms, GAP_STEPS)
    return Intervals(times_ms, ends, is_linked, guessed)


def hourly_steps(times_ms: Times, fallback_step_ms: StepFallback) -> tuple[Times, Flags]:
    """Return the median step (ms) at each sample, and whether it is guessed."""
    from gpureport.collect.shape.loops import hourly_medians, steps_in_force

    medians = hourly_medians(times_ms, HOUR_MS, MIN_STEPS)
    steps = steps_in_force(times_ms, medians, HOUR_MS)
    known = steps > 0
    fallback = None if known.all() else fallback_step_ms()
    return np.where(known, steps, GUESSED_STEP_MS if fallback is None else fallback), ~known & (fallback is None)


def median_step_ms(step_lists: list[Times]) -> int | None:
    """Return the median step of many signals; None where there are fewer than three steps."""
    steps = np.concatenate([np.diff(times) for times in step_lists]) if step_lists else np.empty(0, np.int64)
    return int(np.median(steps)) if steps.size >= MIN_STEPS else None


def growth(values: Values, is_linked: Flags, refused: Values | None = None) -> tuple[Values, Values]:
    """Return a counter's growth to the next sample (NaN where unknown or refused), and over a gap ending here (NaN elsewhere).

    After a reset the new value, a lower bound, is growth over a gap: 3, 4, 1, 2 gives 1, –, 1, – and –, –, 1, –.
    """
    from gpureport.collect.shape.loops import counter_growth

    return counter_growth(values, is_linked, _NO_VALUES if refused is None else refused)
