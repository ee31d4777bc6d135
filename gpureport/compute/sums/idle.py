"""The rows of ``day.idle_power`` from one part."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from gpureport.compute.sums import loops
from gpureport.compute.sums.rows import Rows
from gpureport.compute.sums.saturation import ACTIVITY, activity


def idle_power(file: Path, cluster: str, allocated: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """The rows from one file of ``lake.device_sample``; ``allocated`` has the runs of allocation, by device and time.

    None where a loop cannot count: for a decimal too large for int64, or rows in another order than the lake's.
    """
    rows = Rows(file, ["power_watts", *ACTIVITY])
    offsets, starts = loops.sampled_in(rows.device, rows.instance, rows.seen_us, *rows.cuts(allocated.slice(0, 0)))
    if not rows.are_plain or not rows.are_in_order(offsets, starts):
        return None
    power = rows.whole("power_watts")
    board = rows.instances.index("") if "" in rows.instances else -1
    is_idle = loops.idle_rows(
        rows.device, rows.instance, board, rows.seen_us, activity(rows), activity(rows, is_of_instances=True), power.bits
    )
    (run_offsets, run_starts_us), (_, run_ends_us) = (rows.cuts(allocated, edge) for edge in ("start_at", "end_at"))
    numbers, bins, milliseconds = loops.idle_by_watt(
        offsets, rows.device, is_idle, rows.seen_us, rows.held_ms, power.numbers, run_offsets, run_starts_us, run_ends_us
    )
    keys = pa.table(rows.keys(cluster, offsets, starts)).take(pa.array(numbers))
    columns = [keys["cluster"], keys["device_uuid"], keys["start_at"], pa.array(bins), pa.array(milliseconds / 1000)]
    return pa.table(columns, schema=schema)
