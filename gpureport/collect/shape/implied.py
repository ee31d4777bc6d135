"""Signals implied by others of a device: memory by the model's data sheet, no XID while its counter stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.devices import DeviceSignals, Origin, Steps
from gpureport.collect.shape.prepare import Prepared
from gpureport.collect.shape.spans import distinct, is_same

DATA_SHEET = "model data sheet"
"""The source of a memory size that no exporter told."""


def imply_memory(found: DeviceSignals, memory_bytes: float) -> None:
    """A device's free memory, as the rest of all; of a whole GPU all is what its model's data sheet says, if no exporter does."""
    points = found.points
    if "fb_free_bytes" in points:
        return
    if "fb_total_bytes" not in points and memory_bytes:
        if "fb_used_bytes" not in points and "fb_used_ratio" in points:
            share = points["fb_used_ratio"]
            _put(found, "fb_used_bytes", "fb_used_ratio", replace(share, values=share.values * memory_bytes))
        if "fb_used_bytes" in points:
            used = points["fb_used_bytes"]
            _put(found, "fb_total_bytes", "fb_used_bytes", replace(used, values=np.full(used.count, memory_bytes)), DATA_SHEET)
    if {"fb_used_bytes", "fb_total_bytes"} <= points.keys():
        used, total = points["fb_used_bytes"], points["fb_total_bytes"]
        if is_same(used.times_ms, total.times_ms) and (fits := used.values <= total.values).any():
            free = Points(used.times_ms[fits], (total.values - used.values)[fits], used.stale_ms)
            _put(found, "fb_free_bytes", "fb_total_bytes", free)


def _put(found: DeviceSignals, name: str, source: str, points: Points, metric: str = "") -> None:
    origin = found.origin[source]
    found.points[name], found.fallback[name] = points, found.fallback[source]
    found.origin[name] = replace(origin, metrics=(metric,) if metric else origin.metrics, dropped=Counter(), other_metrics=())


def imply_no_xid(found: DeviceSignals, counters: Sequence[Prepared], steps: Steps) -> None:
    """No XID stands where only counters of XIDs speak; how they rise is counted by itself."""
    seen = [each for each in counters if each.points.count]
    if "xid_code" in found.points or not seen:
        return
    identity = seen[0].identity
    times = distinct([each.points.times_ms for each in seen])
    found.points["xid_code"] = Points(times, np.zeros(times.size), distinct([each.points.stale_ms for each in seen]))
    found.fallback["xid_code"] = steps.of(seen[0])
    found.origin["xid_code"] = Origin(
        metrics=(identity.meaning.metric,),
        exporter=identity.meaning.exporter,
        node_name=identity.device_labels.node_name,
        first_ms=int(times[0]),
        last_ms=int(times[-1]),
        series_count=len(seen),
        dropped=Counter(),
        other_metrics=(),
    )
