"""One look at every sample of a batch: which series need a second one, and which share their instants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.compiled import compiled
from gpureport.series import SeriesBatch
from gpureport.shape.spans import Flags, Times, Values


class Extents(NamedTuple):
    """Per series of a batch: smallest and largest value (NaN where any is), whether instants only rise, and their hash."""

    lowest: Values
    highest: Values
    is_rising: Flags
    digest: NDArray[np.uint64]


def extents(batch: SeriesBatch) -> Extents:
    """The extents of every series; those of one without samples are NaN."""
    count = batch.series_count
    found = Extents(np.full(count, np.nan), np.full(count, np.nan), np.ones(count, np.bool_), np.zeros(count, np.uint64))
    _look(batch.offsets, batch.times_ms, batch.values, *found)
    return found


@compiled
def _look(
    offsets: Times,
    times: Times,
    values: Values,
    lowest: Values,
    highest: Values,
    is_rising: Flags,
    digest: NDArray[np.uint64],
) -> None:
    for number in range(len(lowest)):
        start, end = offsets[number], offsets[number + 1]
        if start == end:
            continue
        low = high = values[start]
        is_number, rises = not np.isnan(low), True
        mixed = np.uint64(times[start])
        for at in range(start + 1, end):
            value = values[at]
            low, high = min(low, value), max(high, value)
            is_number &= not np.isnan(value)
            rises &= times[at] > times[at - 1]
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(times[at])
        if is_number:
            lowest[number], highest[number] = low, high
        is_rising[number], digest[number] = rises, mixed
