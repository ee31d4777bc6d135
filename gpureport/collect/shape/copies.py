"""Merging of copies: one value per device signal and time, from the copies of several exporters and servers.

Copies from one scrape target (a series per sharing pod, MIG instance or XID code) have equal times: one is kept. Copies from
different targets (replicas, a restarted exporter) have different times: the target with most samples is used, and another one
fills its pauses beyond the gap limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.identity import Provenance
from gpureport.collect.shape.intervals import GAP_STEPS, Times, Values, distinct, hourly_steps, is_among, is_same

_NOTHING: Times = np.empty(0, np.int64)


@dataclass(frozen=True)
class Points:
    """Samples with sorted, distinct times, and the times of staleness markers."""

    times_ms: Times
    values: Values
    stale_ms: Times
    refused: Values | None = None
    """Growth to the next sample that is refused; NaN where growth is accepted, None where all growth is."""

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.times_ms.size)

    def has_times_of(self, other: Points) -> bool:
        """Whether samples and markers have the same times. Most such series share the arrays."""
        return is_same(self.times_ms, other.times_ms) and is_same(self.stale_ms, other.stale_ms)


def collapse_target(copies: list[Points]) -> Points:
    """Merge the series of one scrape target. At equal times the largest value is kept; true copies are equal."""
    if len(copies) == 1:
        return copies[0]
    copies = sorted(copies, key=lambda copy: (int(copy.times_ms[0]), int(copy.times_ms[-1])))
    times = np.concatenate([copy.times_ms for copy in copies])
    values = np.concatenate([copy.values for copy in copies])
    stale = distinct([copy.stale_ms for copy in copies])
    if (np.diff(times) <= 0).any():
        order = np.lexsort((values, times))
        times, values = times[order], values[order]
        kept = np.append(times[1:] != times[:-1], True)
        times, values = times[kept], values[kept]
    return Points(times, values, stale)


def in_order_of_preference(targets: Mapping[Provenance, Points]) -> list[Points]:
    """Sort targets by number of samples, most first. Ties go to the smallest labels."""
    return [targets[key] for key in sorted(targets, key=lambda key: (-targets[key].count, key))]


def merge_targets(targets: list[Points]) -> Points:
    """Merge targets in order of preference. A sample counts only in pauses of all better targets."""
    if len(targets) == 1:
        return targets[0]
    times, values = targets[0].times_ms, targets[0].values
    target_numbers = np.zeros(times.size, np.int64)
    for number, target in enumerate(targets[1:], start=1):
        silent = _is_silent(times, target.times_ms)
        merged = np.concatenate([times, target.times_ms[silent]])
        order = np.argsort(merged, kind="stable")
        values = np.concatenate([values, target.values[silent]])[order]
        target_numbers = np.concatenate([target_numbers, np.full(int(silent.sum()), number)])[order]
        times = merged[order]
    return Points(times, values, _continuing_markers(targets, times, target_numbers))


class CopyMerger:
    """Merges copies of a device signal. The order of times is computed once for signals with the same times arrays."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Provenance, int, int], ...], _Order] = {}

    def merge(self, copies: Sequence[tuple[Provenance, Points]]) -> Points:
        """Merge at least one copy. No copy may be empty."""
        if len(copies) == 1:
            return copies[0][1]
        key = tuple((provenance, id(points.times_ms), id(points.stale_ms)) for provenance, points in copies)
        if key not in self._known:
            self._known[key] = _sorted_order(copies)
        order = self._known[key]
        if order.positions is None:
            return _merged(copies)
        return Points(order.times_ms, np.concatenate([points.values for _, points in copies])[order.positions], order.stale_ms)


@dataclass(frozen=True)
class _Order:
    """Sorted order of the concatenated values of all copies. ``positions`` is None where the order depends on the values."""

    copies: Sequence[tuple[Provenance, Points]]
    """Kept alive so that the ids of the arrays stay unique."""
    times_ms: Times
    stale_ms: Times
    positions: NDArray[np.int64] | None


def _sorted_order(copies: Sequence[tuple[Provenance, Points]]) -> _Order:
    if any(_overlap(found) for found in _by_target(copies).values()):
        return _Order(copies, _NOTHING, _NOTHING, None)
    ends = np.cumsum([points.count for _, points in copies])
    numbered = [
        (provenance, Points(points.times_ms, np.arange(end - points.count, end, dtype=np.float64), points.stale_ms))
        for (provenance, points), end in zip(copies, ends.tolist(), strict=True)
    ]
    merged = _merged(numbered)
    return _Order(copies, merged.times_ms, merged.stale_ms, merged.values.astype(np.int64))


def _overlap(copies: list[Points]) -> bool:
    """Whether two copies may have a common time."""
    ranges = sorted((int(copy.times_ms[0]), int(copy.times_ms[-1])) for copy in copies)
    return any(after[0] <= before[1] for before, after in pairwise(ranges))


def _by_target(copies: Sequence[tuple[Provenance, Points]]) -> dict[Provenance, list[Points]]:
    targets: dict[Provenance, list[Points]] = defaultdict(list)
    for provenance, points in copies:
        targets[provenance].append(points)
    return targets


def _merged(copies: Sequence[tuple[Provenance, Points]]) -> Points:
    return merge_targets(in_order_of_preference({key: collapse_target(found) for key, found in _by_target(copies).items()}))


def _continuing_markers(targets: list[Points], times_ms: Times, target_numbers: NDArray[np.int64]) -> Times:
    """Return the markers to keep. A marker is dropped where another target continues: the series moved, but did not end."""
    kept = []
    for number, target in enumerate(targets):
        following = np.searchsorted(times_ms, target.stale_ms, side="left")
        padded_numbers = np.append(target_numbers, number)
        kept.append(target.stale_ms[padded_numbers[following] == number])
    return distinct(kept)


def _is_silent(reporting_ms: Times, times_ms: Times) -> NDArray[np.bool_]:
    """Whether each time is in a pause of ``reporting_ms`` longer than the gap limit, or as far outside its range."""
    steps = np.diff(reporting_ms)
    usual, _ = hourly_steps(reporting_ms, lambda: int(np.median(steps)) if steps.size else 0)
    after = np.searchsorted(reporting_ms, times_ms, side="left")
    pause = np.concatenate([[reporting_ms[0] - times_ms[0]], steps, [times_ms[-1] - reporting_ms[-1]]])
    return np.asarray((pause[after] > GAP_STEPS * usual[np.maximum(after - 1, 0)]) & ~is_among(times_ms, reporting_ms))
