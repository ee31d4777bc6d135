"""The rows of ``day.power_activity`` from one part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpureport.compute.sums import loops
from gpureport.compute.sums.rows import Rows
from gpureport.compute.sums.saturation import activity

_RATIOS = {"none": "", "engine": "gr_engine_active_ratio", "sm": "sm_active_ratio"}
_STEPS = ("observed_seconds", "measured_seconds", "idle_joules", "above_joules", "above_watts", "begun_joules", "is_board_active")
_SECONDS = ("observed_seconds", "measured_seconds", "active_seconds", "activity_unknown_seconds", "equal_seconds")


def mig_energy(file: Path, instances: pa.Table, steps: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """The rows from one file of ``lake.device_sample``; instances by device and interval, steps by interval and time.

    None where a loop cannot count: pods share by utilization, a sum is too large or negative, or rows are in another order.
    """
    rows = Rows(file, list(_RATIOS.values()), are_of_instances=True)
    names = {"device_uuid": pa.array(rows.devices, pa.string()), "gpu_instance_id": pa.array(rows.instances, pa.string())}
    instances = instances.filter(pc.is_in(instances["device_uuid"], names["device_uuid"]))
    key = rows.device.astype(np.int64) << 32 | rows.instance
    is_first = np.diff(key, prepend=-1) != 0
    is_later = rows.seen_us[1:] >= rows.seen_us[:-1] + 1000 * np.maximum(rows.held_ms[:-1], 1)
    is_in_order = np.unique(key[is_first]).size == is_first.sum() and (is_first[1:] | is_later).all()
    if not rows.are_plain or not is_in_order or pc.any(instances["has_util"]).as_py():
        return None
    device, instance = (_whole(pc.index_in(instances[name], known).fill_null(-1)) for name, known in names.items())
    run = pc.index_in(pa.array(device << 32 | instance), pa.array(key[is_first])).fill_null(-1).to_numpy()
    offsets = np.append(np.flatnonzero(is_first), rows.count)  # an instance without rows has run -1, which ends before it begins
    steps = steps.filter(pc.is_in(steps["interval_number"], instances["interval_number"]))
    interval, slices, steps_of = map(_whole, (instances["interval_number"], instances["slice_count"], steps["interval_number"]))
    begun, ended = (np.searchsorted(steps_of, interval, side) for side in ("left", "right"))
    signal = _whole(pc.index_in(instances["signal"], pa.array(_RATIOS)))
    of_instances = [interval, _whole(instances["start_at"]), begun, ended, offsets[run], offsets[run + 1]]
    of_instances += [_whole(instances["instance_owner_count"]), slices, signal]
    parts = map(rows.whole, _RATIOS.values())
    ratios = [np.where(np.unpackbits(each.bits, count=rows.count, bitorder="little"), each.numbers, loops.NONE) for each in parts]
    sums, counts, watts, is_odd = loops.mig_energy(
        rows.seen_us, rows.held_ms, activity(rows, is_of_instances=True), np.array(ratios), np.array(of_instances),
        _whole(steps["step_at"]), np.array([steps[name].cast(pa.float64()).to_numpy() for name in _STEPS]),
    )  # fmt: skip
    totals = np.where(counts > 0, sums / 1e12, np.nan)
    slice_share, equal_share, idle_share = (instances[f"{name}_share_ratio"].to_numpy() for name in ("slice", "equal", "idle"))
    columns = {
        **dict(zip(_SECONDS, totals, strict=False)),
        "allocated_idle_joules": totals[5] * equal_share,
        "idle_joules": totals[6] * idle_share,
        "active_joules": totals[7] * slices + totals[10] * slice_share,
        "active_joules_unweighted": totals[8] + totals[10] * equal_share,
        "active_joules_kepler": totals[9] + np.where(signal == 0, totals[11] * equal_share, 0),
        "active_watts_max": np.fmax(watts[1] * slices, watts[0] * slice_share),
        "clamped_count": np.where(counts[12] > 0, sums[12], np.nan),
        "steps": np.full(len(instances), None),
        "method": np.where(signal == 0, "equal_share", "activity_slice_share"),
    }
    found = [pa.array(columns[name], from_pandas=True) if name in columns else instances[name] for name in schema.names]
    return None if is_odd else pa.table(found, schema.names).filter(pa.array(ended > begun)).cast(schema)


def _whole(column: pa.ChunkedArray) -> loops.Whole:
    return np.array(column.cast(pa.int64()).to_numpy(), np.int64)
