"""One value per device signal and instant, out of the many copies that exporters and servers hand out.

Copies through one scrape target (a series per sharing pod, per MIG instance, per XID code) have equal instants: one is
kept. Copies through different targets (replicas, a restarted exporter) have different instants: the fullest
serves, and another only where the fuller ones are silent longer than the gap limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.identity import Provenance
from gpureport.collect.shape.intervals import GAP_STEPS, Times, Values, distinct, is_among

_NOTHING: Times = np.empty(0, np.int64)


@dataclass(frozen=True)
class Points:
    """Instants with values, sorted and distinct, and the instants at which a series was marked as ended."""

    times_ms: Times
    values: Values
    stale_ms: Times
    refused: Values | None = None
    """Growth to the next sample that is not believed; NaN where it is, None where all is."""

    @property
    def count(self) -> int:
        """Number of instants."""
        return int(self.times_ms.size)


def collapse_target(copies: list[Points]) -> Points:
    """The series of one scrape target as one: at equal instants the largest value, which among true copies is any."""
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
    """The target with most samples first; among equals the one with the smallest labels."""
    return [targets[key] for key in sorted(targets, key=lambda key: (-targets[key].count, key))]


def merge_targets(targets: list[Points]) -> Points:
    """Targets in order of preference, as one: a sample counts unless a better target had samples then."""
    if len(targets) == 1:
        return targets[0]
    times, values = targets[0].times_ms, targets[0].values
    speaker = np.zeros(times.size, np.int64)
    for number, target in enumerate(targets[1:], start=1):
        silent = _is_silent(times, target.times_ms)
        merged = np.concatenate([times, target.times_ms[silent]])
        order = np.argsort(merged, kind="stable")
        values = np.concatenate([values, target.values[silent]])[order]
        speaker = np.concatenate([speaker, np.full(int(silent.sum()), number)])[order]
        times = merged[order]
    return Points(times, values, _markers(targets, times, speaker))


class Merges:
    """The copies of a device signal as one; how instants follow one another is worked out once for signals that share them."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Provenance, int, int], ...], _Order] = {}

    def of(self, copies: Sequence[tuple[Provenance, Points]]) -> Points:
        """All copies as one; none of them is empty, and there is at least one."""
        if len(copies) == 1:
            return copies[0][1]
        key = tuple((provenance, id(points.times_ms), id(points.stale_ms)) for provenance, points in copies)
        if key not in self._known:
            self._known[key] = _order_of(copies)
        order = self._known[key]
        if order.positions is None:
            return _merged(copies)
        return Points(order.times_ms, np.concatenate([points.values for _, points in copies])[order.positions], order.stale_ms)


@dataclass(frozen=True)
class _Order:
    """Order of all copies' values, one after another; ``positions`` is None where the values themselves decide."""

    copies: Sequence[tuple[Provenance, Points]]
    """Kept, so that the addresses of their instants stay theirs."""
    times_ms: Times
    stale_ms: Times
    positions: NDArray[np.int64] | None


def _order_of(copies: Sequence[tuple[Provenance, Points]]) -> _Order:
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
    """Whether any instant may be in two of them."""
    ranges = sorted((int(copy.times_ms[0]), int(copy.times_ms[-1])) for copy in copies)
    return any(after[0] <= before[1] for before, after in pairwise(ranges))


def _by_target(copies: Sequence[tuple[Provenance, Points]]) -> dict[Provenance, list[Points]]:
    targets: dict[Provenance, list[Points]] = defaultdict(list)
    for provenance, points in copies:
        targets[provenance].append(points)
    return targets


def _merged(copies: Sequence[tuple[Provenance, Points]]) -> Points:
    return merge_targets(in_order_of_preference({key: collapse_target(found) for key, found in _by_target(copies).items()}))


def _markers(targets: list[Points], times_ms: Times, speaker: NDArray[np.int64]) -> Times:
    """The staleness markers that count: a target that another one follows has moved, not ended."""
    kept = []
    for number, target in enumerate(targets):
        following = np.searchsorted(times_ms, target.stale_ms, side="left")
        speakers = np.append(speaker, number)
        kept.append(target.stale_ms[speakers[following] == number])
    return distinct(kept)


def _is_silent(speaking_ms: Times, times_ms: Times) -> NDArray[np.bool_]:
    """Pauses of ``speaking_ms`` longer than the gap limit; also before its first instant and after its last one."""
    steps = np.diff(speaking_ms)
    limit = GAP_STEPS * float(np.median(steps)) if steps.size else 0.0
    after = np.searchsorted(speaking_ms, times_ms, side="left")
    pause = np.concatenate([[speaking_ms[0] - times_ms[0]], steps, [times_ms[-1] - speaking_ms[-1]]])
    return np.asarray((pause[after] > limit) & ~is_among(times_ms, speaking_ms))
