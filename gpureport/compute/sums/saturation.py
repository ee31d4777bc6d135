"""All sums of ``day.sample_sum`` from one part: most follow from the kind of a signal, a few combine signals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpureport.compute.sums import loops
from gpureport.compute.sums.rows import Bits, Rows, doubles, instants
from gpureport.values.tables.telemetry import SIGNALS, Signal

_OF_INSTANCES = ("gr_engine_active_ratio", "sm_active_ratio")
ACTIVITY = ("gpu_util_ratio", *_OF_INSTANCES, "pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second")
_MEMORY = ("fb_used_bytes", "fb_free_bytes")
_BIN_WIDTHS = {
    "gpu_util_ratio": 0.01,
    "sm_active_ratio": 0.01,
    "tensor_active_ratio": 0.01,
    "dram_active_ratio": 0.01,
    "memory_used_ratio": 0.01,
    "power_watts": 5.0,
    "gpu_temp_celsius": 1.0,
}
"""The same as in the SQL function ``bin_width``."""


def value_times(file: Path, cluster: str, ownership: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """The rows of ``day.value_time`` from one file of ``lake.device_sample``; ownership by device and time.

    None where a loop cannot count: for a decimal too large for int64, or rows in another order than the lake's.
    """
    rows = Rows(file, [*_BIN_WIDTHS, *_MEMORY])
    offsets, starts = loops.sampled_in(rows.device, rows.instance, rows.seen_us, *rows.cuts(ownership))
    if not rows.are_plain or not rows.are_in_order(offsets, starts):
        return None
    keys = pa.table(rows.keys(cluster, offsets, starts))
    found = []
    for signal, width in _BIN_WIDTHS.items():
        bins, milliseconds, ends = loops.time_by_bin(offsets, rows.held_ms, *_values(rows, signal), width)
        lists = {
            name: pa.ListArray.from_arrays(ends, each) for name, each in (("bins", bins), ("bin_milliseconds", milliseconds))
        }
        columns = {**dict(zip(keys.column_names, keys.columns, strict=True)), **lists, "signal": pa.repeat(signal, len(keys))}
        found.append(pa.table({name: columns[name] for name in schema.names}, schema).filter(pa.array(np.diff(ends) > 0)))
    return pa.concat_tables(found)


def _values(rows: Rows, signal: str) -> tuple[loops.Real, Bits]:
    if signal == "memory_used_ratio":
        used, free = (rows.values(name)[:2] for name in _MEMORY)
        return loops.memory_ratio(*used, *free)
    numbers, bits, places = rows.values(signal)
    return doubles(numbers, places), bits


_COUNTS = NDArray[np.int64]
_WHOLE_HOUR = -(2**63)
_HOUR_US = 3_600_000_000
_THROTTLE_BITS = {"sw_power_cap": 2, "hw_slowdown": 3, "sync_boost": 4, "sw_thermal": 5, "hw_thermal": 6, "hw_power_brake": 7}
"""NVML's clock event reasons that slow a GPU down; the other bits do not."""
_ENERGY = (
    ("counter_integral_joules", 3),
    ("counter_active_seconds", 0),
    ("counter_active_joules", 6),
    ("counter_unknown_seconds", 0),
    ("powered_seconds", 0),
    ("powered_joules", 3),
    ("powered_active_seconds", 0),
    ("powered_active_joules", 3),
    ("powered_unknown_seconds", 0),
    ("active_watts_max", 3),
    ("counter_compared_joules", 6),
)
"""The sums of ``loops.energy``, with the decimal places of their numbers; sums of power are watts x ms."""


def saturation_sums(
    file: Path, cluster: str, ownership: pa.Table, memory_threshold_ratio: float, schema: pa.Schema
) -> pa.Table | None:
    """The rows of ``day.sample_sum`` from one file of ``lake.device_sample``; ownership by device and time.

    None where a loop cannot count: for a decimal too large for int64, or rows in another order than the lake's.
    """
    rows = Rows(file, [name for signal in SIGNALS for name in _columns(signal)])
    if not rows.are_plain:
        return None
    found = _Intervals(rows, ownership, memory_threshold_ratio, schema.names)
    return found.table(cluster, schema) if rows.are_in_order(found.offsets, found.starts) else None


class _Intervals:
    """The intervals of a part's devices, and the sums over their rows, by name."""

    def __init__(self, rows: Rows, ownership: pa.Table, memory_threshold_ratio: float, wanted: Collection[str]) -> None:
        self._wanted = {*wanted, *(f"{name}_active_ratio_seconds" for name in _THROTTLE_BITS)}
        self._rows = rows
        cut_offsets, cuts_us = rows.cuts(ownership)
        self.offsets, self.starts, self.reaches = loops.intervals(
            rows.device, rows.instance, rows.seen_us, rows.held_ms, cut_offsets, cuts_us
        )
        self._active = activity(rows)
        self._sums: dict[str, pa.Array] = {}
        for signal in SIGNALS:
            _OF_KIND[signal.kind](self, signal)
        self._time()
        self._memory(memory_threshold_ratio)
        self._throttle()
        self._energy()

    def table(self, cluster: str, schema: pa.Schema) -> pa.Table:
        """The sums that the schema names, with the keys."""
        count, is_whole = self.starts.size, self.reaches == _WHOLE_HOUR
        found = {
            **self._sums,
            **self._rows.keys(cluster, self.offsets, self.starts),
            "hour_start_at": instants(self.starts - self.starts % _HOUR_US),
            "end_at": instants(np.where(is_whole, self.starts + _HOUR_US, self.reaches)),
            "is_whole_hour": pa.array(is_whole),
        }
        return pa.table([found.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in schema], schema=schema)

    def _put(self, name: str, sums: NDArray[Any], counts: NDArray[Any] | None = None) -> None:
        self._sums[name] = pa.array(sums, mask=None if counts is None else counts == 0)

    def _seconds(self, name: str, milliseconds: _COUNTS, counts: _COUNTS) -> None:
        self._put(name, milliseconds / 1000, counts)

    def gauge(self, signal: Signal) -> None:
        """Seconds with a value, value x seconds, and the largest value."""
        rows, stem, unit = self._rows, *_stem_and_unit(signal)
        integral_name, largest_name = _integral_name(stem, unit), f"{signal.name}_max"
        if not rows.has(signal.name) or self._wanted.isdisjoint((integral_name, largest_name)):
            return
        column = rows.values(signal.name)
        weights = rows.held_seconds if column.places < 0 else rows.held_ms
        known_ms, sums, largest, counts = loops.weighed(self.offsets, rows.held_ms, weights, column.numbers, column.bits)
        self._seconds(f"{stem}_seen_seconds", known_ms, counts)
        self._put(integral_name, sums if column.places < 0 else doubles(sums, column.places) / 1000, counts)
        self._put(largest_name, doubles(largest, column.places), counts)

    def counter(self, signal: Signal) -> None:
        """Seconds with known growth, growth, rows with a value, growth over gaps and resets."""
        rows, stem, unit = self._rows, *_stem_and_unit(signal)
        if not any(map(rows.has, _columns(signal))):
            return
        increase = rows.values(signal.increase_name)
        gap = rows.values(signal.gap_increase_name)
        known_ms, sums, counts, values, gap_sums, gaps = loops.growth(
            self.offsets, rows.held_ms, rows.bits(signal.name), increase.numbers, increase.bits, gap.numbers, gap.bits
        )
        self._seconds(f"{stem}_seen_seconds", known_ms, counts)
        self._put(signal.name, doubles(sums, increase.places), counts)
        self._put(f"{stem}_sample_count", values, values)
        self._put(f"{stem}_gap_{unit}", gap_sums, gaps)

    def code(self, signal: Signal) -> None:
        """Seconds with a value."""
        rows = self._rows
        none = np.zeros(rows.count, np.int64)
        known_ms, _, _, counts = loops.weighed(self.offsets, rows.held_ms, none, none, rows.bits(signal.name))
        self._seconds(f"{_stem_and_unit(signal)[0]}_seen_seconds", known_ms, counts)

    def bitmask(self, signal: Signal) -> None:
        """Nothing: ``_throttle`` makes the sums, because counters report the same."""

    def _time(self) -> None:
        rows = self._rows
        found = loops.time_by_activity(self.offsets, rows.held_ms, self._active, rows.bits("is_carried"))
        self._put("observed_seconds", found[: loops.UNKNOWN + 1].sum(axis=0) / 1000)
        for number, name in enumerate(("inactive", "effective", "ineffective", "busy", "unreported")):
            self._seconds(f"{name}_seconds", found[number], found[loops.UNKNOWN + 1 + number])
        self._put("sample_count", found[-1])

    def _memory(self, threshold: float) -> None:
        rows = self._rows
        used, free, total, reserved = (rows.values(f"fb_{name}_bytes")[:2] for name in ("used", "free", "total", "reserved"))
        ratio, bits = loops.memory_ratio(*used, *free)
        known_ms, sums, largest, counts = loops.weighed(self.offsets, rows.held_ms, rows.held_seconds, ratio, bits)
        self._seconds("memory_seen_seconds", known_ms, counts)
        self._put("memory_used_ratio_seconds", sums, counts)
        self._put("memory_used_ratio_max", largest, counts)
        self._seconds("memory_pressure_seconds", loops.time_above(self.offsets, rows.held_ms, ratio, bits, threshold), counts)
        self._put("fb_total_bytes_max", *loops.memory_size(self.offsets, *total, *used, *free, *reserved))

    def _throttle(self) -> None:
        """Each reason by its own counter where there is one, else by the bits."""
        rows = self._rows
        masks, bits, _ = rows.values("throttle_reasons")
        any_of = sum(1 << bit for bit in _THROTTLE_BITS.values())
        found, counts = loops.time_by_bit(self.offsets, rows.held_ms, masks.astype(np.int32, copy=False), bits, any_of)
        self._seconds("throttle_seen_seconds", found[0], counts)
        self._seconds("any_throttle_seconds", found[9], counts)
        for name, bit in _THROTTLE_BITS.items():
            for unit, by_counter, by_bit in (("_seen", "_seen", found[0]), ("", "_ratio", found[1 + bit])):
                self._seconds(f"{name}{unit}_seconds", by_bit, counts)
                if (known := self._sums.get(f"{name}_active{by_counter}_seconds")) is not None:
                    self._sums[f"{name}{unit}_seconds"] = pc.coalesce(known, self._sums[f"{name}{unit}_seconds"])

    def _energy(self) -> None:
        rows = self._rows
        power, increase = rows.whole("power_watts"), rows.whole("energy_joules_increase")
        sums, counts, begun = loops.energy(
            self.offsets, rows.held_ms, self._active, power.numbers, power.bits, increase.numbers, increase.bits,
            rows.bits("energy_joules"),
        )  # fmt: skip
        self._put("begun_joules", begun, counts[11])
        for number, (name, places) in enumerate(_ENERGY):
            per = 1000 if name.endswith("_seconds") or (places == 3 and name.endswith("_joules")) else 1
            self._put(name, doubles(sums[number], places) / per, counts[number])


_OF_KIND: Mapping[str, Callable[[_Intervals, Signal], None]] = {
    "gauge": _Intervals.gauge,
    "counter": _Intervals.counter,
    "bitmask": _Intervals.bitmask,
    "code": _Intervals.code,
}


def _columns(signal: Signal) -> list[str]:
    return [signal.name, signal.increase_name, signal.gap_increase_name] if signal.kind == "counter" else [signal.name]


def _stem_and_unit(signal: Signal) -> tuple[str, str]:
    per_second = signal.name.removesuffix("_bytes_per_second")
    if per_second != signal.name:
        return per_second, "bytes_per_second"
    stem, _, unit = signal.name.rpartition("_")
    return stem, unit


def _integral_name(stem: str, unit: str) -> str:
    """Name of value x seconds: watts add up to joules, rates to bytes."""
    joined = {"watts": "joules", "bytes_per_second": "bytes", "bytes": "byte_seconds"}
    return f"{stem}_{joined.get(unit, f'{unit}_seconds')}"


def activity(rows: Rows, is_of_instances: bool = False) -> NDArray[np.int8]:
    """Activity of each row by the signals of a whole GPU; for instances, by the signals that they have."""
    util, engine, sm, sent, received = ("" if is_of_instances and name not in _OF_INSTANCES else name for name in ACTIVITY)
    return loops.activity(
        *rows.whole(util)[:2], *rows.whole(engine)[:2], *rows.whole(sm)[:2], *rows.values(sent)[:2], *rows.values(received)[:2]
    )
