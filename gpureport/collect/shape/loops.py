"""Compiled passes over sorted times. In numpy each of them would need a search per time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.intervals import Flags, Times, Values
from gpureport.values.runtime.compiled import Number, compiled
from gpureport.values.series import SeriesBatch

_MOST_OUTLIERS = 10
"""Maximum length of a run of outliers. A longer run is another counter."""


@compiled
def hourly_medians(times_ms: Times, hour_ms: Number, least: Number) -> Times:
    """Return each hour's median step (ms; the mean of the middle two rounded down), from the first hour; 0: too few steps."""
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
    steps = times_ms[1:] - times_ms[:-1]
    if (steps == steps[0]).all():
        return steps[0]
    _sort(steps)
    return (steps[(steps.size - 1) // 2] + steps[steps.size // 2]) // 2


@compiled
def _sort(numbers: Times) -> None:
    """Shell sort: as fast as numba's own for an hour of steps, which takes two seconds to compile (``np.diff`` takes five)."""
    gap = numbers.size // 2
    while gap > 0:
        for place in range(gap, numbers.size):
            number, at = numbers[place], place
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number
        gap //= 2


@compiled
def steps_in_force(times_ms: Times, medians: Times, hour_ms: Number) -> Times:
    """Return the largest of each hour's and its neighbors' median steps, at each time; 0 where none has one."""
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
def interval_ends(times_ms: Times, steps_ms: Times, stale_ms: Times, gap_steps: Number) -> tuple[Times, Flags]:
    """Return (end of each sample's interval, whether the next sample follows without a gap)."""
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
def samples_in_force(times_ms: Times, ends_ms: Times, starts_ms: Times) -> tuple[Times, Flags, Flags]:
    """Return at each start: the last sample (or the first of all), whether it holds, and whether it begins there."""
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
def is_contained(instants_ms: Times, times_ms: Times) -> Flags:
    """Whether each of the sorted times is among other sorted times."""
    found = np.zeros(instants_ms.size, np.bool_)
    at = 0
    for number in range(instants_ms.size):
        while at < times_ms.size and times_ms[at] < instants_ms[number]:
            at += 1
        found[number] = at < times_ms.size and times_ms[at] == instants_ms[number]
    return found


@compiled
def is_suspect(times_ms: Times, values: Values, rate: Number, slow_ms: Number, slow_rate: Number) -> bool:
    """Whether a counter falls, exceeds ``rate`` per ms, or stays at or below ``slow_rate`` for ``slow_ms`` (0: no such check)."""
    since = 0
    for at in range(1, values.size):
        change, step = values[at] - values[at - 1], times_ms[at] - times_ms[at - 1]
        if change < 0 or change > rate * step:
            return True
        if change > slow_rate * step:
            since = at
        elif slow_ms and times_ms[at] - times_ms[since] >= slow_ms:
            return True
    return False


@compiled
def check_counter(
    times_ms: Times, values: Values, steps_ms: Times, rate: Number, refill_steps: Number
) -> tuple[Flags, Values, Times]:
    """Check a counter: return the samples to keep, refused growth to the next kept one (NaN: none), and counts by reason.

    Counts: outliers, growth beyond ``rate`` per ms, backward steps. Growth may use the time since the last change, plus one
    unused step: exporters refresh less often than they are scraped. A fall is a reset only where the new value can have grown
    since the last change and the next sample continues from it, and where it does not return to the level before refused growth.
    Growth over a reset of up to ``refill_steps`` steps is a lower bound, which other signals measure better.
    """
    kept, refused, counts = np.ones(values.size, np.bool_), np.full(values.size, np.nan), np.zeros(3, np.int64)
    before, since, good, spare = 0, times_ms[0] if values.size else 0, 0, np.inf
    origin = -1
    for at in range(1, values.size):
        change, spare = values[at] - values[before], min(spare, rate * steps_ms[at])
        possible = rate * (times_ms[at] - since) + spare
        if at >= good:
            good = at + _outliers(times_ms, values, before, at, rate, since, steps_ms[at])
        if at < good:
            kept[at] = False
            counts[0] += 1
            continue
        if change > possible:
            refused[before] = change
            counts[1] += 1
            origin = before if origin < 0 else origin
        elif change < 0:
            is_back = origin >= 0 and 0 <= values[at] - values[origin] <= rate * (times_ms[at] - times_ms[origin])
            is_reset = not is_back and values[at] <= possible and _is_continued(times_ms, values, at, rate, steps_ms[at])
            if not is_reset:
                refused[before] = -change
                counts[2] += 1
            elif times_ms[at] - times_ms[before] <= refill_steps * steps_ms[at]:
                refused[before] = 0.0
            origin = -1 if is_back or is_reset else origin
        if change != 0:
            since = times_ms[at]
        if 0 < change <= possible:
            spare = possible - change
        before = at
    return kept, refused, counts


@compiled
def _is_continued(times_ms: Times, values: Values, at: Number, rate: Number, step_ms: Number) -> bool:
    """Whether the next sample, if any, is possible growth from this value."""
    if at + 1 == values.size:
        return True
    return bool(0 <= values[at + 1] - values[at] <= rate * (times_ms[at + 1] - times_ms[at] + step_ms))


@compiled
def _outliers(
    times_ms: Times, values: Values, before: Number, at: Number, rate: Number, since: Number, step_ms: Number
) -> Number:
    """Return the number of samples from ``at`` on that fit each other, but neither the sample before nor the one after."""
    for after in range(at + 1, min(at + _MOST_OUTLIERS + 1, values.size)):
        if values[after] <= values[before]:
            # A new counter hardly reaches the exact old value. A single stray sample may, but nothing continues from it.
            is_same = 0 < values[after] == values[before] < values[at] and after + 1 < values.size
            if is_same and _is_continued(times_ms, values, after, rate, step_ms):
                return after - at
            break
    if at + 1 < values.size and _is_outlier(times_ms, values, before, at, rate, since, step_ms):
        return 1
    change = values[at] - values[before]
    if 0 <= change <= rate * (times_ms[at] - since + step_ms):
        return 0
    for after in range(at + 2, min(at + _MOST_OUTLIERS + 1, values.size)):
        back, onwards = values[after] - values[after - 1], rate * (times_ms[after] - times_ms[after - 1] + step_ms)
        if 0 <= values[after] - values[before] <= rate * (times_ms[after] - since + step_ms) and not 0 <= back <= onwards:
            return after - at
    return 0


@compiled
def _is_outlier(
    times_ms: Times, values: Values, before: Number, at: Number, rate: Number, since: Number, step_ms: Number
) -> bool:
    """Whether the samples around this one fit each other, and this one fits neither.

    A backward step can look the same. Then the growth to or from this sample is the counter's usual growth in that time.
    """
    after, change = values[at + 1], values[at] - values[before]
    if not 0 <= after - values[before] <= rate * (times_ms[at + 1] - since + step_ms):
        return False
    if 0 <= change <= rate * (times_ms[at] - since + step_ms) and not (
        rate * (times_ms[at + 1] - times_ms[at] + step_ms) < after < values[at]
    ):
        return False
    usual = 0.0
    if at + 2 < values.size and values[at + 2] >= after:
        usual = (values[at + 2] - after) / (times_ms[at + 2] - times_ms[at + 1])
    to_here, onwards = times_ms[at] - times_ms[before], times_ms[at + 1] - times_ms[at]
    without = abs(after - values[before] - usual * (to_here + onwards))
    stepped = abs(change - usual * to_here) if change >= 0 else abs(after - values[at] - usual * onwards)
    return bool(without < stepped)


@compiled
def counter_growth(values: Values, is_linked: Flags, refused: Values) -> tuple[Values, Values]:
    """Return a counter's growth to the next sample, and over a gap or reset that ends at a sample; NaN elsewhere.

    ``refused`` is a number where the growth to the next sample is refused.
    """
    increase, gap_increase = np.full(values.size, np.nan), np.full(values.size, np.nan)
    for at in range(values.size - 1):
        change = values[at + 1] - values[at]
        if refused.size and not np.isnan(refused[at]):
            continue
        if change < 0:
            gap_increase[at + 1] = values[at + 1]
        elif is_linked[at]:
            increase[at] = change
        else:
            gap_increase[at + 1] = change
    return increase, gap_increase


@compiled
def merge_distinct(one: Times, other: Times) -> Times:
    """Return the distinct times of two sorted arrays, sorted."""
    found = np.empty(one.size + other.size, np.int64)
    count, at, other_at = 0, 0, 0
    while at < one.size or other_at < other.size:
        if other_at == other.size or (at < one.size and one[at] <= other[other_at]):
            instant = one[at]
            at += 1
        else:
            instant = other[other_at]
            other_at += 1
        if count == 0 or found[count - 1] != instant:
            found[count] = instant
            count += 1
    return found[:count]


class Extents(NamedTuple):
    """Per series: smallest and largest value (NaN where any value is), whether times only rise, and a hash of the times."""

    lowest: Values
    highest: Values
    is_whole: Flags
    """No value has a fraction or is NaN."""
    is_rising: Flags
    digest: NDArray[np.uint64]


def extents(batch: SeriesBatch) -> Extents:
    """Return the extents of all series; NaN for a series without samples."""
    count = batch.series_count
    unknown, yes = np.full(count, np.nan), np.ones(count, np.bool_)
    found = Extents(unknown, unknown.copy(), yes, yes.copy(), np.zeros(count, np.uint64))
    _scan(batch.offsets, batch.times_ms, batch.values, *found)
    return found


@compiled
def _scan(
    offsets: Times,
    times: Times,
    values: Values,
    lowest: Values,
    highest: Values,
    is_whole: Flags,
    is_rising: Flags,
    digest: NDArray[np.uint64],
) -> None:
    for number in range(len(lowest)):
        start, end = offsets[number], offsets[number + 1]
        if start == end:
            continue
        low = high = values[start]
        is_number, rises, whole = not np.isnan(low), True, low == np.floor(low)
        mixed = np.uint64(times[start])
        for at in range(start + 1, end):
            value = values[at]
            low, high = min(low, value), max(high, value)
            is_number &= not np.isnan(value)
            whole &= value == np.floor(value)
            rises &= times[at] > times[at - 1]
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(times[at])
        if is_number:
            lowest[number], highest[number] = low, high
        is_whole[number], is_rising[number], digest[number] = whole, rises, mixed


def equal_to(batch: SeriesBatch, others: Times) -> Flags:
    """Whether each series has the same times as the series with the number in ``others``. Both must have equal lengths."""
    found = np.ones(batch.series_count, np.bool_)
    _compare(batch.offsets, batch.times_ms, others, found)
    return found


@compiled
def _compare(offsets: Times, times: Times, others: Times, is_equal: Flags) -> None:
    for number in range(len(others)):
        start, other = offsets[number], offsets[others[number]]
        if start != other:
            for at in range(offsets[number + 1] - start):
                if times[start + at] != times[other + at]:
                    is_equal[number] = False
                    break
