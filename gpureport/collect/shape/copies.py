"""Merging of copies: one value per device signal and time, from the copies of several exporters and servers.

Copies from one scrape target (a series per sharing pod, MIG instance or XID code) have equal times: one is kept. Copies from
different targets (replicas, a restarted exporter) have different times: the target with most samples is used, and another one
fills its pauses beyond the gap limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.identity import Provenance
from gpureport.collect.shape.intervals import GAP_STEPS, NO_TIMES, Times, Values, distinct, hourly_steps, is_among, is_same


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
    if (np.diff(times) <= 0).any():
        order = np.lexsort((values, times))
        times, values = times[order], values[order]
        kept = np.append(times[1:] != times[:-1], True)
        times, values = times[kept], values[kept]
    return Points(times, values, _continuing_markers(copies, [copy.times_ms for copy in copies], times))


def merge_targets(targets: list[Points]) -> Points:
    """Merge targets in order of preference. A sample counts only in pauses of all better targets."""
    if len(targets) == 1:
        return targets[0]
    times, values = targets[0].times_ms, targets[0].values
    used_ms = [times]
    for target in targets[1:]:
        silent = _is_silent(times, target.times_ms)
        used_ms.append(target.times_ms[silent])
        merged = np.concatenate([times, used_ms[-1]])
        order = np.argsort(merged, kind="stable")
        values = np.concatenate([values, target.values[silent]])[order]
        times = merged[order]
    return Points(times, values, _continuing_markers(targets, used_ms, times))


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
            return merge_copies(copies)
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
        return _Order(copies, NO_TIMES, NO_TIMES, None)
    ends = np.cumsum([points.count for _, points in copies])
    numbered = [
        (provenance, Points(points.times_ms, np.arange(end - points.count, end, dtype=np.float64), points.stale_ms))
        for (provenance, points), end in zip(copies, ends.tolist(), strict=True)
    ]
    merged = merge_copies(numbered)
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


def merge_copies(copies: Sequence[tuple[Provenance, Points]]) -> Points:
    """Merge the copies of a signal. Targets with most samples come first; ties go to the smallest labels."""
    targets = {key: collapse_target(found) for key, found in _by_target(copies).items()}
    return merge_targets([targets[key] for key in sorted(targets, key=lambda key: (-targets[key].count, key))])


def _continuing_markers(copies: Sequence[Points], used_ms: Sequence[Times], times_ms: Times) -> Times:
    """Return the markers to keep: after a copy's own sample, unless a copy without a marker continues within the gap limit."""
    if not any(copy.stale_ms.size for copy in copies):
        return NO_TIMES
    is_end = np.append(np.diff(times_ms) > GAP_STEPS * _usual_steps(times_ms)[:-1], True)
    found = []
    for copy, own_ms in zip(copies, used_ms, strict=True):
        after = np.searchsorted(times_ms, copy.stale_ms, side="left")
        is_own, is_back = (is_among(times_ms[np.clip(at, 0, times_ms.size - 1)], own_ms) for at in (after - 1, after))
        is_end[after[is_back] - 1] = True
        found.append((copy.stale_ms[is_own], after[is_own] - 1))
    return distinct([stale_ms[is_end[before]] for stale_ms, before in found])


def _usual_steps(times_ms: Times) -> Times:
    """Return the median step in force at each time; of all times where an hour has too few."""
    return hourly_steps(times_ms, lambda: int(np.median(np.diff(times_ms))) if times_ms.size > 1 else 0)[0]


def _is_silent(reporting_ms: Times, times_ms: Times) -> NDArray[np.bool_]:
    """Whether each time is in a pause of ``reporting_ms`` longer than the gap limit, or as far outside its range."""
    after = np.searchsorted(reporting_ms, times_ms, side="left")
    pause = np.concatenate([[reporting_ms[0] - times_ms[0]], np.diff(reporting_ms), [times_ms[-1] - reporting_ms[-1]]])
    limit = GAP_STEPS * _usual_steps(reporting_ms)
    return np.asarray((pause[after] > limit[np.maximum(after - 1, 0)]) & ~is_among(times_ms, reporting_ms))
