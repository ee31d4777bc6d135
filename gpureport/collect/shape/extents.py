"""One look at every sample of a batch: which series need a second one, and which share their instants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.spans import Flags, Times, Values
from gpureport.values.runtime.compiled import compiled
from gpureport.values.series import SeriesBatch


class Extents(NamedTuple):
    """Per series of a batch: smallest and largest value (NaN where any is), whether instants only rise, and their hash."""

    lowest: Values
    highest: Values
    is_whole: Flags
    """No value has a fraction, and none is NaN."""
    is_rising: Flags
    digest: NDArray[np.uint64]


def extents(batch: SeriesBatch) -> Extents:
    """The extents of every series; those of one without samples are NaN."""
    count = batch.series_count
    unknown, yes = np.full(count, np.nan), np.ones(count, np.bool_)
    found = Extents(unknown, unknown.copy(), yes, yes.copy(), np.zeros(count, np.uint64))
    _look(batch.offsets, batch.times_ms, batch.values, *found)
    return found


@compiled
def _look(
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
    """Whether each series has the very instants of another one, given by its number; both hold equally many."""
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
