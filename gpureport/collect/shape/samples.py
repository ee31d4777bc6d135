"""The raw samples of a batch by series: sorted, one per instant; series with equal instants share one array of them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.spans import Times, Values
from gpureport.values.series import SeriesBatch


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
        from gpureport.collect.shape.loops import equal_to, extents

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
