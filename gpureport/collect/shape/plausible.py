"""Values that contradict each other on a device: taken out and counted, never bent into shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpureport.collect.shape.spans import Flags
from gpureport.collect.shape.wide import DeviceRows

DEAD_AFTER_MS = 3_600_000
"""GR_ENGINE_ACTIVE at exactly 0 for this much busy time is a dead signal (dcgm-exporter 662), not an idle GPU."""
_BUSY_UTIL = 0.5
_BUSY_ENGINE = 0.05
_BUSY_POWER = 0.4
_ROUNDING_BYTES = 2 * 1024 * 1024
"""Used, free and total are rounded to MiB, each for itself."""


def drop_contradictions(rows: DeviceRows) -> dict[str, dict[str, int]]:
    """Take them out of the rows; how many samples of which signal, by reason."""
    dropped: dict[str, dict[str, int]] = {}
    dead = _dead(rows)
    if dead.any():
        dropped["gr_engine_active_ratio"] = {"dead": _take_out(rows, "gr_engine_active_ratio", dead)}
    over = _over_total(rows)
    if over.any():
        for signal in ("fb_used_bytes", "fb_free_bytes"):
            if signal in rows.columns:
                dropped[signal] = {"over_total": _take_out(rows, signal, over)}
    return dropped


def _take_out(rows: DeviceRows, signal: str, where: Flags) -> int:
    column = rows.columns[signal]
    taken = where & ~np.isnan(column)
    column[taken] = np.nan
    return int((taken & ~rows.is_carried).sum())


def _dead(rows: DeviceRows) -> Flags:
    """The runs of exact zeros that hold more than an hour in which other signals show a busy GPU.

    Copies over PCIe and contexts merely held are true zeros: GPU_UTIL may read 100 there, but neither SM nor memory nor
    power shows work.
    """
    dead = np.zeros(rows.count, np.bool_)
    active = rows.columns.get("gr_engine_active_ratio")
    if active is None or not (active == 0).any():
        return dead
    busy_ms = np.where(_is_busy(rows), rows.held_ms, 0)
    for start, end in _stretches(active == 0):
        if busy_ms[start:end].sum() >= DEAD_AFTER_MS:
            dead[start:end] = True
    return dead


def _is_busy(rows: DeviceRows) -> Flags:
    evidence = _at_least(rows, "dram_active_ratio", _BUSY_ENGINE) | _at_least(rows, "sm_active_ratio", _BUSY_ENGINE)
    return _at_least(rows, "gpu_util_ratio", _BUSY_UTIL) & (evidence | _draws_power(rows))


def _at_least(rows: DeviceRows, signal: str, bound: float) -> Flags:
    column = rows.columns.get(signal)
    return np.zeros(rows.count, np.bool_) if column is None else column >= bound


def _draws_power(rows: DeviceRows) -> Flags:
    """Power well above idle; idle is the least that the device drew on the day."""
    power, limit = rows.columns.get("power_watts"), rows.columns.get("power_limit_watts")
    if power is None or limit is None or np.isnan(power).all():
        return np.zeros(rows.count, np.bool_)
    idle = float(np.nanmin(power))
    return np.asarray(power >= idle + _BUSY_POWER * (limit - idle))


def _stretches(flags: Flags) -> Iterator[tuple[int, int]]:
    """Start and end (outside) of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _over_total(rows: DeviceRows) -> Flags:
    """Times at which used and free memory together exceed the total."""
    used, free, total = (rows.columns.get(f"fb_{name}_bytes") for name in ("used", "free", "total"))
    if used is None or total is None:
        return np.zeros(rows.count, np.bool_)
    together = used if free is None else used + np.where(np.isnan(free), 0.0, free)
    return np.asarray(together > total + _ROUNDING_BYTES)
