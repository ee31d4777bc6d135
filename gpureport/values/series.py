"""Raw series from the sources: the one value type between every source and ``shape``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Labels = Mapping[str, str]

STALE_BITS = 0x7FF0000000000002
"""Bit pattern (a float64 NaN) with which Prometheus marks the end of a series in remote read and chunks."""

METRIC_LABEL = "__name__"


@dataclass(frozen=True)
class SeriesBatch:
    """Raw samples of many series, concatenated.

    Series ``i`` owns ``times_ms[offsets[i]:offsets[i + 1]]`` (int64, milliseconds since the epoch) and the same slice of
    ``values`` (float64, in the metric's unit, with staleness markers as ``STALE_BITS``). Samples of a series may repeat or be out
    of order; ``shape`` sorts and removes duplicates. Entries may have equal labels where a source returns a series in several
    parts.
    """

    labels: Sequence[Labels]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    external_labels: Labels = field(default_factory=dict)
    """Labels that the server adds to its answers (remote read only). They are not part of a series' identity."""

    @property
    def series_count(self) -> int:
        """Number of series in the batch."""
        return len(self.labels)

    @property
    def sample_count(self) -> int:
        """Number of samples in the batch, with staleness markers."""
        return int(self.times_ms.size)


def is_stale(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the staleness markers. Ordinary NaN values are not markers."""
    return np.asarray(values.view(np.uint64) == np.uint64(STALE_BITS))


def series_batch(
    labels: Sequence[Labels], times_ms: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]]
) -> SeriesBatch:
    """Return a batch of series from their labels, times and values."""
    offsets = np.cumsum([0, *(each.size for each in times_ms)]).astype(np.int64)
    times = np.concatenate([np.empty(0, np.int64), *times_ms])
    return SeriesBatch(labels, offsets, times, np.concatenate([np.empty(0), *values]))


def concatenate(batches: list[SeriesBatch]) -> SeriesBatch:
    """Return one batch of all the series, in order."""
    if len(batches) == 1:
        return batches[0]
    offsets = np.cumsum(np.concatenate([[0], *(np.diff(batch.offsets) for batch in batches)]))
    return SeriesBatch(
        labels=[labels for batch in batches for labels in batch.labels],
        offsets=offsets.astype(np.int64),
        times_ms=np.concatenate([batch.times_ms for batch in batches]) if batches else np.empty(0, np.int64),
        values=np.concatenate([batch.values for batch in batches]) if batches else np.empty(0, np.float64),
        external_labels=batches[0].external_labels if batches else {},
    )
