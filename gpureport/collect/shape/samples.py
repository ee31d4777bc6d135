"""The raw samples of a batch by series: sorted, one per instant; series with equal instants share one array of them."""

from __future__ import annotations

from collections import Counter
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


class Raw(NamedTuple):
    """A series' raw samples; the extremes are NaN where any value is."""

    times: Times
    values: Values
    lowest: float
    highest: float
    is_whole: bool
    """No value has a fraction, and none is NaN."""


class Samples:
    """Raw samples by series, and by what is left of them when values that are none are out."""

    def __init__(self, batch: SeriesBatch) -> None:
        found = extents(batch)
        self._batch = batch
        self._extents = list(zip(found.lowest.tolist(), found.highest.tolist(), found.is_whole.tolist(), strict=True))
        self._is_rising = found.is_rising.tolist()
        self._offsets = batch.offsets.tolist()
        leader: dict[tuple[int, int], int] = {}
        keys = zip(np.diff(batch.offsets).tolist(), found.digest.tolist(), strict=True)
        alike = np.array([leader.setdefault(key, number) for number, key in enumerate(keys)], np.int64)
        self._alike = np.where(equal_to(batch, alike), alike, np.arange(alike.size)).tolist()
        self._times: dict[int, Times] = {}
        self._sorted_times: list[Times] = []
        self._parts: dict[tuple[int, bytes], Times] = {}

    def of(self, numbers: list[int], dropped: Counter[str]) -> Raw:
        """A series' samples from its pieces; of several at one instant the first that came."""
        number = numbers[0]
        if len(numbers) > 1 or not self._is_rising[number]:
            return self._sorted(numbers, dropped)
        return Raw(self._instants(self._alike[number]), self._batch.values[self._piece(number)], *self._extents[number])

    def part(self, times: Times, kept: NDArray[np.bool_]) -> Times:
        """Some of a series' instants, one array for the series that share theirs and keep the same."""
        key = id(times), kept.tobytes()  # the batch's own arrays live as long as this
        if key not in self._parts:
            self._parts[key] = times[kept]
        return self._parts[key]

    def _instants(self, number: int) -> Times:
        if number not in self._times:
            self._times[number] = self._batch.times_ms[self._piece(number)]
        return self._times[number]

    def _piece(self, number: int) -> slice:
        return slice(self._offsets[number], self._offsets[number + 1])

    def _sorted(self, numbers: list[int], dropped: Counter[str]) -> Raw:
        times = np.concatenate([self._batch.times_ms[self._piece(number)] for number in numbers])
        values = np.concatenate([self._batch.values[self._piece(number)] for number in numbers])
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        kept = np.append(True, times[1:] != times[:-1])
        dropped["duplicate"] += int((~kept).sum())
        times, values = times[kept], values[kept]
        self._sorted_times.append(times)  # kept alive: its parts are known by its address
        is_whole = all(self._extents[number][2] for number in numbers)
        return Raw(times, values, float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)), is_whole)
