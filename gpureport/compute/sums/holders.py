"""Sums of the holders' own series while they hold a device: over a day's rows of ``lake.sample``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gpureport.compute.sums import loops
from gpureport.compute.sums.rows import instants

_HOUR_US = 3_600_000_000
_COLUMNS = ["series_id", "seen_at", "held_seconds", "value"]


def pod_sums(files: Sequence[Path], series: pa.Table) -> pa.Table:
    """The rows of ``day.pod_sum``."""
    series = series.sort_by([("series_id", "ascending"), ("start_at", "ascending")])
    number, start_us = _whole(series, "line_number"), _whole(series, "start_at")
    starts, ends = start_us // 1000 * 1000, _whole(series, "end_at") // 1000 * 1000
    holdings, first, holding = np.unique(np.stack([number, start_us]), axis=1, return_index=True, return_inverse=True)
    hours = starts[first] // _HOUR_US
    offsets = np.append(0, np.cumsum(ends[first] // _HOUR_US - hours + 1))
    slots, is_alone = (offsets[:-1] - hours)[holding], series["is_alone"].to_numpy()
    counts, held_ms, sums, largest = (np.zeros(offsets[-1], kind) for kind in (np.int64, np.int64, np.float64, np.float64))
    lines = _whole(series, "series_id"), starts, ends, slots, is_alone
    copies = [*_within(files, lines, (counts, held_ms, sums, largest))]
    line, start, end, value = map(np.concatenate, zip(*copies, strict=True))
    order = np.lexsort((end, value, start, number[line]))
    line, start, end, value = line[order], start[order], end[order], value[order]
    end[:-1] = np.where(np.diff(number[line]) == 0, np.minimum(end[:-1], start[1:]), end[:-1])
    held, slot = (end - start) // 1000, slots[line] + start // _HOUR_US
    largest[slot[counts[slot] == 0]] = -np.inf
    for sum_of, each in ((counts, 1), (held_ms, held), (sums, value * held)):
        np.add.at(sum_of, slot, each)  # in order, as DuckDB's one thread does
    np.maximum.at(largest, slot, value)
    slot = np.flatnonzero(counts)
    of = np.searchsorted(offsets, slot, "right") - 1
    return pa.table(
        {
            "line_number": holdings[0, of],
            "start_at": instants(holdings[1, of]),
            "hour_start_at": instants((hours[of] + slot - offsets[of]) * _HOUR_US),
            "seen_seconds": held_ms[slot] / 1000,
            "value_seconds": sums[slot] / 1000,
            "value_max": largest[slot],
        }
    )


def util_readings(files: Sequence[Path], series: pa.Table) -> pa.Table:
    """The rows of ``day.util_reading``."""
    series = series.sort_by([("series_id", "ascending"), ("start_at", "ascending")])
    number, starts, owner_count = (_whole(series, name) for name in ("holder_number", "start_at", "pod_owner_count"))
    none = np.zeros(len(series), np.int64)
    lines = _whole(series, "series_id"), starts, _whole(series, "end_at"), none, none > 0
    _, holder, sizes = np.unique(number, return_inverse=True, return_counts=True)
    is_alone = (sizes == 1)[holder]
    alone, copies = [], []
    for line, start, end, value in _within(files, lines, (none, none.copy(), none.astype(float), none.astype(float))):
        columns = (number[line], instants(start), instants(end), value / owner_count[line])
        rows = pa.table(dict(zip(("holder_number", "step_at", "until_at", "weight"), columns, strict=True)))
        alone.append(rows.filter(is_alone[line]))
        copies.append(rows.filter(~is_alone[line]))
    largest = pa.concat_tables(copies).group_by(["holder_number", "step_at"]).aggregate([("until_at", "max"), ("weight", "max")])
    return pa.concat_tables([*alone, largest.rename_columns(alone[0].column_names)])


def _within(
    files: Sequence[Path], lines: tuple[NDArray[Any], ...], totals: tuple[NDArray[Any], ...]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Per file: line, start, end (µs) and value of each sample within the time of a line that is not added to the totals."""
    for file in files:
        rows = pq.ParquetFile(file, pre_buffer=False).read(columns=_COLUMNS, use_threads=False)
        held, value = (rows[name].to_numpy() for name in _COLUMNS[2:])
        given = *map(_unchanged, (_whole(rows, "series_id"), _whole(rows, "seen_at"), held, value, *lines)), *totals
        found = np.empty((4, 0), np.int64)
        if count := loops.within(found, *given):
            found = np.empty((4, count), np.int64)
            loops.within(found, *given)
        yield found[0], found[2], found[3], value[found[1]]


def _whole(rows: pa.Table, name: str) -> loops.Whole:
    found: loops.Whole = (rows[name].cast(pa.timestamp("us")) if name.endswith("_at") else rows[name]).cast(pa.int64()).to_numpy()
    return found


def _unchanged(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: the loop is compiled once, for read-only arrays."""
    found = array.view()
    found.flags.writeable = False
    return found
