"""Passes over sorted instants that numpy can only do by searching each one, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpureport.runtime.compiled import Number, compiled

Times = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).max


@compiled
def hourly_medians(times_ms: Times, hour_ms: Number, least: Number) -> Times:
    """The median step of each hour from the first one on (ms, of the middle two the mean rounded down); 0: too few steps."""
    first_hour = times_ms[0] // hour_ms
    medians = np.zeros(times_ms[-1] // hour_ms - first_hour + 1, np.int64)
    start = 0
    while start < times_ms.size - 1:
        hour = times_ms[start] // hour_ms
        end = start + 1
        while end < times_ms.size - 1 and times_ms[end] < (hour + 1) * hour_ms:
            end += 1
        if end - start >= least:
            medians[hour - first_hour] = _median(times_ms[start : end + 1])
        start = end
    return medians


@compiled
def _median(times_ms: Times) -> Number:
    steps = np.diff(times_ms)
    if (steps == steps[0]).all():
        return steps[0]
    steps.sort()
    return (steps[(steps.size - 1) // 2] + steps[steps.size // 2]) // 2


@compiled
def steps_in_force(times_ms: Times, medians: Times, hour_ms: Number) -> Times:
    """At each instant the widest of its hour's and the neighbouring hours' medians; 0 where none has one."""
    steps = np.empty(times_ms.size, np.int64)
    hour, widest = np.int64(-1), np.int64(0)
    for at in range(times_ms.size):
        own = times_ms[at] // hour_ms - times_ms[0] // hour_ms
        if own != hour:
            hour, widest = own, np.int64(0)
            for near in range(max(hour - 1, 0), min(hour + 2, medians.size)):
                widest = max(widest, medians[near])
        steps[at] = widest
    return steps


@compiled
def reach(times_ms: Times, steps_ms: Times, stale_ms: Times, gap_steps: Number) -> tuple[Times, Flags]:
    """(until when each sample is in force, whether the next one follows without a gap)."""
    ends, is_linked = np.empty(times_ms.size, np.int64), np.zeros(times_ms.size, np.bool_)
    last, marker = times_ms.size - 1, 0
    for at in range(times_ms.size):
        end = times_ms[at] + (gap_steps if at < last else 1) * steps_ms[at]
        while marker < stale_ms.size and stale_ms[marker] <= times_ms[at]:
            marker += 1
        if marker < stale_ms.size:
            end = min(end, stale_ms[marker])
        if at < last and end >= times_ms[at + 1]:
            end, is_linked[at] = times_ms[at + 1], True
        ends[at] = end
    return ends, is_linked


@compiled
def in_force(times_ms: Times, ends_ms: Times, starts_ms: Times) -> tuple[Times, Flags, Flags]:
    """At each start: the last sample (the first where none has been), whether it is in force, whether it begins there."""
    sample = np.empty(starts_ms.size, np.int64)
    is_held, is_own = np.empty(starts_ms.size, np.bool_), np.empty(starts_ms.size, np.bool_)
    at = -1
    for row in range(starts_ms.size):
        while at + 1 < times_ms.size and times_ms[at + 1] <= starts_ms[row]:
            at += 1
        sample[row] = max(at, 0)
        is_held[row] = at >= 0 and starts_ms[row] < ends_ms[at]
        is_own[row] = is_held[row] and times_ms[at] == starts_ms[row]
    return sample, is_held, is_own


@compiled
def among(instants_ms: Times, times_ms: Times) -> Flags:
    """Which of the sorted instants are among the sorted times."""
    found = np.zeros(instants_ms.size, np.bool_)
    at = 0
    for number in range(instants_ms.size):
        while at < times_ms.size and times_ms[at] < instants_ms[number]:
            at += 1
        found[number] = at < times_ms.size and times_ms[at] == instants_ms[number]
    return found


@compiled
def grown(values: Values, is_linked: Flags) -> tuple[Values, Values]:
    """A counter's growth to the next sample, and growth over a gap or reset that ended at a sample; NaN elsewhere."""
    increase, gap_increase = np.full(values.size, np.nan), np.full(values.size, np.nan)
    for at in range(values.size - 1):
        change = values[at + 1] - values[at]
        if change < 0:
            gap_increase[at + 1] = values[at + 1]
        elif is_linked[at]:
            increase[at] = change
        else:
            gap_increase[at + 1] = change
    return increase, gap_increase


@compiled
def united(one: Times, other: Times) -> Times:
    """The distinct instants of two sorted arrays, sorted."""
    found = np.empty(one.size + other.size, np.int64)
    count, at, beside = 0, 0, 0
    while at < one.size or beside < other.size:
        if beside == other.size or (at < one.size and one[at] <= other[beside]):
            instant = one[at]
            at += 1
        else:
            instant = other[beside]
            beside += 1
        if count == 0 or found[count - 1] != instant:
            found[count] = instant
            count += 1
    return found[:count]
