"""Counters that only grow until the driver is loaded anew, and the last XID code."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpureport.simulate.story import Day

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NS = 1_000_000_000
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass
class Carried:
    """Counters of a node at the end of the day before, by metric and GPU."""

    counters: dict[str, Ints] = field(default_factory=dict)


def count(day: Day, watts: Floats, lost: dict[str, Floats], carried: Carried, draw: np.random.Generator) -> dict[str, Floats]:
    """Counters of the day by metric, each the sum of what the steps before it added, and the XID codes."""
    resets = [cut.start for step in day.story.planted.reload_steps if (cut := day.cut(step, step + 1)).stop > cut.start]
    counters = {"DCGM_FI_DEV_XID_ERRORS": _xid_codes(day)}
    for metric, growth in _growth(day, watts, lost, draw).items():
        start = carried.counters.get(metric, np.zeros(growth.shape[0], np.int64))
        if metric == _ENERGY and metric not in carried.counters:
            start = np.asarray(draw.integers(0, 10**9, growth.shape[0]), np.int64)
        counter, carried.counters[metric] = _accumulate(start, growth, resets)
        counters[metric] = counter.astype(np.float64)
    return counters


def _growth(day: Day, watts: Floats, lost: dict[str, Floats], draw: np.random.Generator) -> dict[str, Ints]:
    """Growth in each step: millijoules, nanoseconds, events."""
    seconds = day.plan.step_seconds
    replays = (draw.random(watts.shape) < 1e-4).astype(np.int64)
    growth = {_ENERGY: np.rint(watts * 1000).astype(np.int64) * seconds, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": replays}
    for reason in ("power", "thermal", "sync_boost", "board_limit"):
        share = lost.get(reason, np.zeros_like(watts))
        growth[f"DCGM_FI_DEV_{reason.upper()}_VIOLATION"] = np.rint(share * seconds * _NS).astype(np.int64)
    return growth


def _accumulate(start: Ints, growth: Ints, resets: list[int]) -> tuple[Ints, Ints]:
    """The counter at each step, and where it stands after the last; a reset lets it begin again from 0."""
    counter = start[:, None] + np.cumsum(growth, axis=1) - growth
    for step in resets:
        counter[:, step:] -= counter[:, step, None].copy()
    return counter, counter[:, -1] + growth[:, -1]


def _xid_codes(day: Day) -> Floats:
    """The last code, until the exporter or the driver starts anew; 0 before the first."""
    planted = day.story.planted
    cleared = (*planted.restart_steps, *planted.reload_steps)
    codes = np.zeros((len(day.node.gpus), day.steps))
    for xid in planted.xids:
        end = min((step for step in cleared if step > xid.step), default=day.plan.step_count)
        codes[xid.gpu_index, day.cut(xid.step, end)] = xid.code
    return codes
