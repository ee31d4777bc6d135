"""Raw series as the sources hand them over: one value type between every source and ``shape``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Labels = Mapping[str, str]

STALE_BITS = 0x7FF0000000000002
"""The float64 bit pattern with which Prometheus marks that a series ended (a NaN; remote read and chunks carry it)."""

METRIC_LABEL = "__name__"


@dataclass(frozen=True)
class SeriesBatch:
    """Raw samples of many series, end to end.

    Series ``i`` owns ``times_ms[offsets[i]:offsets[i + 1]]`` (int64, milliseconds since the epoch) and the
    same slice of ``values`` (float64, in the metric's own unit, staleness markers included as ``STALE_BITS``).
    Samples of a series may repeat or be out of order; ``shape`` sorts and removes duplicates.
    Two entries may have equal labels (a source may hand over a series in several parts).
    """

    labels: Sequence[Labels]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    external_labels: Labels = field(default_factory=dict)
    """Labels that the server adds to what it hands out (remote read only); not part of a series' identity."""

    @property
    def series_count(self) -> int:
        """Number of series in the batch."""
        return len(self.labels)

    @property
    def sample_count(self) -> int:
        """Number of samples in the batch, staleness markers included."""
        return int(self.times_ms.size)


def is_stale(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Staleness markers among the values; an ordinary NaN is none."""
    return np.asarray(values.view(np.uint64) == np.uint64(STALE_BITS))


def series_batch(
    labels: Sequence[Labels], times_ms: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]]
) -> SeriesBatch:
    """A batch of series, each with times and values of its own."""
    offsets = np.cumsum([0, *(each.size for each in times_ms)]).astype(np.int64)
    times = np.concatenate([np.empty(0, np.int64), *times_ms])
    return SeriesBatch(labels, offsets, times, np.concatenate([np.empty(0), *values]))


def concatenate(batches: list[SeriesBatch]) -> SeriesBatch:
    """One batch of all the series, in order."""
    if len(batches) == 1:
        return batches[0]
    lengths = [np.diff(batch.offsets) for batch in batches]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]) if batches else np.zeros(1)
    return SeriesBatch(
        labels=[labels for batch in batches for labels in batch.labels],
        offsets=offsets.astype(np.int64),
        times_ms=np.concatenate([batch.times_ms for batch in batches]) if batches else np.empty(0, np.int64),
        values=np.concatenate([batch.values for batch in batches]) if batches else np.empty(0, np.float64),
        external_labels=batches[0].external_labels if batches else {},
    )
