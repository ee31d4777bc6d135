"""One node's readings over one day, in the exporter's units.

Readings are consistent: power is between idle power and the limit and follows activity; energy is the integral of power.
A violation counter grows at most as fast as time, and its bit in the reasons mask is set exactly while it grows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpureport.simulate.inventory import SHARING_REPLICAS, Node, random
from gpureport.simulate.story import Day
from gpureport.simulate.workload import Pod

Floats = NDArray[np.float64]

_THROTTLED_LOAD = 0.98
_BURST_SECONDS = 600


@dataclass(frozen=True)
class Load:
    """Rows × steps; ``throttle``: fraction of time lost, by reason; ``pod_compute``: demand of pods on shared GPUs, by uid."""

    compute: Floats
    tensor: Floats
    dram: Floats
    link: Floats
    memory_mib: Floats
    held: Floats
    throttle: dict[str, Floats]
    pod_compute: dict[str, Floats] = field(default_factory=dict)


def day_load(day: Day) -> Load:
    """Return the summed demand of the day's pods."""
    compute, tensor, dram, link, memory, held, power, thermal = np.zeros((8, len(day.node.rows), day.steps))
    load = Load(compute, tensor, dram, link, memory, held, {"power": power, "thermal": thermal})
    for pod in day.history.pods:
        interval = day.interval(pod)
        if interval.start < interval.stop:
            _add_pod(day, load, pod, interval)
    return load


def _add_pod(day: Day, load: Load, pod: Pod, interval: slice) -> None:
    seconds = day.start_ms // 1000 + np.arange(interval.start, interval.stop) * day.plan.step_seconds
    demand = _rhythm(pod, seconds)
    _throttle(day, load, pod, demand)
    if pod.slot.is_shared:
        demand /= SHARING_REPLICAS
        load.pod_compute[pod.uid] = demand
    for row in pod.slot.rows:
        load.compute[row, interval] += demand
        load.tensor[row, interval] += demand * pod.kind.tensor
        load.dram[row, interval] += demand * pod.kind.dram
        load.link[row, interval] += demand if len(pod.slot.rows) > 1 else 0.0
        load.memory_mib[row, interval] += pod.memory_mib(row)
        load.held[row, interval] = 1


def _rhythm(pod: Pod, seconds: NDArray[np.int64]) -> Floats:
    """Return the fraction of its slot that the pod needs at each second."""
    demand = np.full(seconds.size, pod.load)
    if pod.kind.rhythm == "daily":
        # The minimum is at 03:00 UTC, the maximum at 15:00.
        demand *= 0.675 - 0.325 * np.cos(2 * np.pi * (seconds / 86_400 - 0.125))
    elif pod.kind.rhythm == "bursts":
        demand *= seconds // _BURST_SECONDS % 2
    return demand


def _throttle(day: Day, load: Load, pod: Pod, demand: Floats) -> None:
    if pod.phase is None:
        return
    phase, interval = day.cut(pod.phase.start_step, pod.phase.end_step), day.interval(pod)
    demand[phase.start - interval.start : phase.stop - interval.start] = _THROTTLED_LOAD
    load.throttle[pod.phase.reason][list(pod.slot.rows), phase] = pod.phase.ratio


_PURPOSE = 3
_CONTEXT_WATTS = 45.0
"""Power of idle contexts above idle power (measured: 125–130 W on an H200 with 82 W idle power)."""
IDLE_BIT, POWER_CAP_BIT, THERMAL_BIT = 0x1, 0x4, 0x20


@dataclass(frozen=True)
class NodeDay:
    """Readings in the exporter's units: ``board`` by GPU, ``instance`` by row, ``pod_util`` by uid over its interval."""

    board: dict[str, Floats]
    instance: dict[str, Floats]
    pod_util: dict[str, Floats]


@dataclass(frozen=True)
class _Board:
    """Activity of boards, GPUs × steps: fractions of capacity, and of time lost to throttling."""

    active: Floats
    tensor: Floats
    dram: Floats
    link: Floats
    held: NDArray[np.bool_]
    lost: dict[str, Floats]
    noise: Floats


def node_day(day: Day, carried: Carried) -> NodeDay:
    """Return all readings of a node and day; days must be requested in order, because counters continue from ``carried``."""
    load = day_load(day)
    draw = random(day.plan, _PURPOSE, day.node.index, day.number)
    compute = np.clip(load.compute * (1 + 0.04 * _noise(draw, load.compute)), 0, 1)
    active, tensor, dram, link, held = (
        _of_board(day.node, rows) for rows in (compute, load.tensor, load.dram, load.link, load.held)
    )
    lost = {reason: _of_board(day.node, rows) for reason, rows in load.throttle.items()}
    board = _Board(active, tensor, dram, link, held > 0, lost, _noise(draw, active))
    readings = _board_readings(day.node, board)
    readings |= count(day, readings["DCGM_FI_DEV_POWER_USAGE"], lost, carried, draw)
    return NodeDay(readings, _instance_readings(day.node, load, compute, draw), _pod_util(day, load, readings))


def _noise(draw: np.random.Generator, like: Floats) -> Floats:
    return draw.standard_normal(like.shape, np.float32).astype(np.float64)


def _of_board(node: Node, rows: Floats) -> Floats:
    """Return the sum of rows by GPU; an instance is weighted with its fraction of the seven compute slices."""
    board = np.zeros((len(node.gpus), rows.shape[1]))
    for values, row in zip(rows, node.rows, strict=True):
        board[row.gpu.index] += values * (row.instance.slices / 7 if row.instance else 1.0)
    return board


def _instance_readings(node: Node, load: Load, compute: Floats, draw: np.random.Generator) -> dict[str, Floats]:
    """Return the signals of each instance: memory and activity of its engines."""
    usable = np.array([row.usable_mib for row in node.rows], float)[:, None]
    reserved = np.array([0 if row.instance else row.gpu.model.reserved_mib for row in node.rows], float)[:, None]
    used = np.minimum(load.memory_mib, usable)
    jitter = 1 + 0.03 * _noise(draw, compute)
    followed = compute / np.maximum(load.compute, 1e-9) * jitter
    return {
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": usable - used,
        "DCGM_FI_DEV_FB_RESERVED": np.broadcast_to(reserved, used.shape),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _ratio(compute),
        "DCGM_FI_PROF_SM_ACTIVE": _ratio(compute * 0.94),
        "DCGM_FI_PROF_SM_OCCUPANCY": _ratio(compute * 0.42 * jitter),
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _ratio(load.tensor * followed),
        "DCGM_FI_PROF_PIPE_FP32_ACTIVE": _ratio(compute * 0.12),
        "DCGM_FI_PROF_DRAM_ACTIVE": _ratio(load.dram * followed),
    }


def _ratio(values: Floats) -> Floats:
    """Return the ratio with six decimals, as the exporter prints it."""
    return np.asarray(np.round(np.clip(values, 0, 1), 6), np.float64)


def _board_readings(node: Node, board: _Board) -> dict[str, Floats]:
    """Return the signals of the whole board, all instances together."""
    model, active, power_lost, heat_lost = node.model, board.active, board.lost["power"], board.lost["thermal"]
    watts = _watts(node, board)
    clock = np.where(active > 0, model.sm_clock_mhz * (1 - 0.5 * (power_lost + heat_lost)), 345.0)
    reasons = IDLE_BIT * (active == 0) + POWER_CAP_BIT * (power_lost > 0) + THERMAL_BIT * (heat_lost > 0)
    traffic = active * (1 + 0.2 * np.tanh(board.noise))
    return {
        "DCGM_FI_DEV_POWER_USAGE": watts,
        "DCGM_FI_DEV_GPU_UTIL": np.rint(100 * np.sqrt(active)),
        "DCGM_FI_DEV_MEM_COPY_UTIL": np.rint(100 * np.minimum(board.dram, 1)),
        "DCGM_FI_DEV_SM_CLOCK": np.rint(clock / 15) * 15,
        "DCGM_FI_DEV_MEM_CLOCK": np.full(active.shape, float(model.memory_clock_mhz)),
        "DCGM_FI_DEV_GPU_TEMP": np.rint(27 + 42 * watts / model.limit_watts + 14 * (heat_lost > 0)),
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": reasons.astype(np.float64),
        "DCGM_FI_PROF_PCIE_TX_BYTES": np.rint(1.1e9 * traffic),
        "DCGM_FI_PROF_PCIE_RX_BYTES": np.rint(2.3e9 * traffic),
        "DCGM_FI_PROF_NVLINK_TX_BYTES": np.rint(board.link * model.nvlink_bytes_per_second),
        "DCGM_FI_PROF_NVLINK_RX_BYTES": np.rint(board.link * model.nvlink_bytes_per_second * 0.98),
    }


def _watts(node: Node, board: _Board) -> Floats:
    """Return idle power, plus context power, plus power by activity; in mW precision, as the driver reports it."""
    model = node.model
    range_watts = 0.9 * (model.limit_watts - model.idle_watts - _CONTEXT_WATTS)
    pipes = 0.30 * np.minimum(board.tensor / 0.62, 1) + 0.15 * np.minimum(board.dram / 0.6, 1)
    demand = model.idle_watts + _CONTEXT_WATTS * board.held + range_watts * (0.55 * board.active + pipes)
    swing = np.where(board.active > 0, 4.0, 0.3) * board.noise
    watts = np.clip(demand + swing, 0.95 * model.idle_watts, 0.97 * model.limit_watts)
    at_limit = model.limit_watts * (1 - 0.012 * np.abs(np.tanh(board.noise)))
    return np.asarray(np.round(np.where(board.lost["power"] > 0, at_limit, watts), 3), np.float64)


def _pod_util(day: Day, load: Load, readings: dict[str, Floats]) -> dict[str, Floats]:
    """Return each pod's share of the utilization of its shared GPU, rounded down so that the sum never exceeds it."""
    util = {}
    for pod in day.history.pods:
        if pod.uid in load.pod_compute:
            row, interval = pod.slot.rows[0], day.interval(pod)
            device = readings["DCGM_FI_DEV_GPU_UTIL"][day.node.rows[row].gpu.index, interval]
            share = load.pod_compute[pod.uid] / np.maximum(load.compute[row, interval], 1e-9)
            util[pod.uid] = np.floor(device * share)
    return util


Ints = NDArray[np.int64]
_NS = 1_000_000_000
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass
class Carried:
    """Counters of a node at the end of the previous day, by metric and GPU."""

    counters: dict[str, Ints] = field(default_factory=dict)


def count(day: Day, watts: Floats, lost: dict[str, Floats], carried: Carried, draw: np.random.Generator) -> dict[str, Floats]:
    """Return the day's counters by metric, each the sum of growth in previous steps, and the XID codes."""
    resets = [cut.start for step in day.history.planted.reload_steps if (cut := day.cut(step, step + 1)).stop > cut.start]
    counters = {"DCGM_FI_DEV_XID_ERRORS": _xid_codes(day)}
    for metric, growth in _growth(day, watts, lost, draw).items():
        start = carried.counters.get(metric, np.zeros(growth.shape[0], np.int64))
        if metric == _ENERGY and metric not in carried.counters:
            start = np.asarray(draw.integers(0, 10**9, growth.shape[0]), np.int64)
        counter, carried.counters[metric] = _accumulate(start, growth, resets)
        counters[metric] = counter.astype(np.float64)
    return counters


def _growth(day: Day, watts: Floats, lost: dict[str, Floats], draw: np.random.Generator) -> dict[str, Ints]:
    """Return the growth per step in mJ, ns or events."""
    seconds = day.plan.step_seconds
    replays = (draw.random(watts.shape) < 1e-4).astype(np.int64)
    growth = {_ENERGY: np.rint(watts * 1000).astype(np.int64) * seconds, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": replays}
    for reason in ("power", "thermal", "sync_boost", "board_limit"):
        share = lost.get(reason, np.zeros_like(watts))
        growth[f"DCGM_FI_DEV_{reason.upper()}_VIOLATION"] = np.rint(share * seconds * _NS).astype(np.int64)
    return growth


def _accumulate(start: Ints, growth: Ints, resets: list[int]) -> tuple[Ints, Ints]:
    """Return the counter at each step and its value after the last; a reset sets it to 0."""
    counter = start[:, None] + np.cumsum(growth, axis=1) - growth
    for step in resets:
        counter[:, step:] -= counter[:, step, None].copy()
    return counter, counter[:, -1] + growth[:, -1]


def _xid_codes(day: Day) -> Floats:
    """Return the last code until a restart of the exporter or a driver reload; 0 before the first code."""
    planted = day.history.planted
    cleared = (*planted.restart_steps, *planted.reload_steps)
    codes = np.zeros((len(day.node.gpus), day.steps))
    for xid in planted.xids:
        end = min((step for step in cleared if step > xid.step), default=day.plan.step_count)
        codes[xid.gpu_index, day.cut(xid.step, end)] = xid.code
    return codes
