"""The rows of one part of ``lake.device_sample`` as arrays, with bits for the values that are known."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gpureport.compute.sums.loops import in_milliseconds
from gpureport.lake.views import is_plain, known_columns

Whole = NDArray[np.int64]
Bits = NDArray[np.uint8]
KEYS = ("device_uuid", "gpu_instance_id", "seen_at", "held_seconds", "is_carried")


class Values(NamedTuple):
    """A column: its numbers (a decimal's as whole numbers of its last place), and one bit a row for whether it is known."""

    numbers: NDArray[Any]
    bits: Bits
    places: int
    """Decimal places; -1 for other numbers."""


class Rows:
    """One part's rows in the file's order: by device, instance and time."""

    def __init__(self, file: Path, wanted: Collection[str], are_of_instances: bool = False) -> None:
        parquet = pq.ParquetFile(file, read_dictionary=list(KEYS[:2]), pre_buffer=False)
        self.are_plain = is_plain(parquet.metadata)
        known = known_columns(parquet.metadata)
        columns = [*KEYS, *(name for name in wanted if name in known and self.are_plain)]
        self._rows = parquet.read(columns=columns, use_threads=False).combine_chunks()
        if are_of_instances:
            self._rows = self._rows.filter(pc.not_equal(self._rows["gpu_instance_id"], "")).combine_chunks()
        self.count = self._rows.num_rows
        self.devices, self.device = self._named("device_uuid")
        self.instances, self.instance = self._named("gpu_instance_id")
        self.seen_us = self._array("seen_at").cast(pa.timestamp("us")).view(pa.int64()).to_numpy()
        self.held_seconds: NDArray[np.float64] = self._array("held_seconds").to_numpy()
        self.held_ms = in_milliseconds(self.held_seconds)
        self._none = np.zeros((self.count + 7) // 8, np.uint8)
        self._all = np.full((self.count + 7) // 8, 255, np.uint8)
        self._zeros = np.zeros(self.count, np.int64)

    def has(self, name: str) -> bool:
        """Whether any row has a value of the column."""
        return name in self._rows.schema.names

    def bits(self, name: str) -> Bits:
        """One bit a row for whether the signal's value is known."""
        return self.values(name).bits

    def whole(self, name: str) -> Values:
        """A column of decimals; zeros, all unknown, where no row has a value."""
        return self.values(name) if self.has(name) else Values(self._zeros, self._none, 0)

    def values(self, name: str) -> Values:
        """A column; zeros, all unknown, where no row has a value."""
        if not self.has(name):
            return Values(self._zeros.view(np.float64), self._none, -1)
        array = self._array(name)
        is_known, numbers = array.buffers()
        bits = self._all if is_known is None else np.frombuffer(is_known, np.uint8)
        if pa.types.is_boolean(array.type):
            return Values(self._zeros, np.frombuffer(numbers, np.uint8), -1)
        width = np.float64 if pa.types.is_floating(array.type) else np.int32 if array.type == pa.int32() else np.int64
        places = array.type.scale if pa.types.is_decimal(array.type) else -1
        found: NDArray[Any] = np.frombuffer(numbers, width)[: self.count]
        return Values(found, bits, places)

    def cuts(self, intervals: pa.Table, edge: str = "start_at") -> tuple[Whole, Whole]:
        """(offsets of each device's intervals, times (µs) of one edge of the intervals in the table's order)."""
        devices = pa.array(self.devices, pa.string())
        of_part = intervals.filter(pc.is_in(intervals["device_uuid"], devices))
        number = pc.index_in(of_part["device_uuid"], devices).to_numpy()
        counts = np.bincount(number, minlength=len(devices)) if number.size else np.zeros(len(devices), np.int64)
        times = of_part[edge].cast(pa.int64()).to_numpy()
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), times[np.argsort(number, kind="stable")]

    def are_in_order(self, offsets: Whole, starts: Whole) -> bool:
        """Whether the intervals with these first rows and starts all have different keys."""
        first = offsets[:-1]
        device, instance = self.device[first], self.instance[first]
        is_next = np.append(True, (device[1:] != device[:-1]) | (instance[1:] != instance[:-1]))[: first.size]
        runs = np.unique(device[is_next].astype(np.int64) * (len(self.instances) + 1) + instance[is_next])
        return runs.size == is_next.sum() and bool((is_next[1:] | (np.diff(starts) > 0)).all())

    def keys(self, cluster: str, offsets: Whole, starts: Whole) -> dict[str, pa.Array]:
        """Cluster, device, instance and start of the intervals with these first rows and starts (µs)."""
        first = offsets[:-1]
        return {
            "cluster": pa.repeat(pa.scalar(cluster), starts.size),
            "device_uuid": pa.array(self.devices, pa.string()).take(pa.array(self.device[first])),
            "gpu_instance_id": pa.array(self.instances, pa.string()).take(pa.array(self.instance[first])),
            "start_at": instants(starts),
        }

    def _array(self, name: str) -> pa.Array:
        column = self._rows[name]
        array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        return array if array.offset == 0 else pa.concat_arrays([array])

    def _named(self, name: str) -> tuple[list[str], NDArray[np.int32]]:
        array = self._rows[name].unify_dictionaries().combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
        return array.dictionary.to_pylist(), array.indices.to_numpy()


def doubles(numbers: NDArray[Any], places: int) -> NDArray[Any]:
    """Decimals as doubles, as DuckDB does it: in two parts where a double does not hold all their digits."""
    if places < 0 or numbers.dtype != np.int64:
        return numbers
    scale = 10**places
    if numbers.size and max(int(numbers.max()), -int(numbers.min())) <= 2**53:
        return np.asarray(numbers / scale)
    whole, rest = np.fix(numbers // scale + ((numbers < 0) & (numbers % scale != 0))), np.fmod(numbers, scale)
    found: NDArray[Any] = np.where(np.abs(numbers) <= 2**53, numbers / scale, whole + rest / scale)
    return found


def instants(microseconds: Whole) -> pa.Array:
    """Times from µs since 1970."""
    return pa.array(microseconds, pa.timestamp("us"))
