"""``day.value_time`` of one part: how long the samples of each value were in force, in bins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from gpureport.compute.sums import loops
from gpureport.compute.sums.rows import Bits, Rows, doubles

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
"""As the SQL function ``bin_width`` has them."""


def value_times(file: Path, cluster: str, ownership: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """The rows of ``day.value_time`` that come of one file of ``lake.device_sample``; ownership by device and time.

    None where a loop cannot tell: of a decimal too large for whole numbers, or of rows in another order than the lake's.
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
