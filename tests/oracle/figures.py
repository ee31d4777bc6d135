"""Figures of a container on a device and of the device: integrals over runs, one figure after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oracle.device import Device, Owner, Run
from oracle.spans import Span, gap_growth, linked_growth, overlap_seconds

AVERAGES = {
    "gpu_usage_avg": "gr_engine_active",
    "dram_active_avg": "dram_active",
    "sm_active_avg": "sm_active",
    "sm_occupancy_avg": "sm_occupancy",
    "tensor_active_avg": "tensor_active",
    "pcie_tx_bytes_per_second_avg": "pcie_tx",
    "pcie_rx_bytes_per_second_avg": "pcie_rx",
    "nvlink_tx_bytes_per_second_avg": "nvlink_tx",
    "nvlink_rx_bytes_per_second_avg": "nvlink_rx",
}
MAXIMA = {"dram_active_max": "dram_active", "sm_active_max": "sm_active"}
VIOLATIONS = ("power_violation", "thermal_violation", "sync_boost_violation", "board_limit_violation")
BITS = {
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
}
ANY_BIT = 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80

Figures = dict[str, float | int | list[int] | None]


def container_figures(device: Device, owner: Owner, threshold: float = 0.9) -> Figures:
    """What ``container_saturation`` says of an owner on a device."""
    return _figures(device, device.owners[owner], threshold)


def device_figures(device: Device, threshold: float = 0.9) -> Figures:
    """The same of the device over all the time that it was seen, and its energy with growth over gaps and resets."""
    start, end = device.seen_ms[0], max(span.end_ms for found in device.signals.values() for span in found)
    figures = _figures(device, [Run(start, end)], threshold)
    energy = device.signals.get("energy_joules")
    grown = None if energy is None else linked_growth(energy, start, end)[0] + gap_growth(energy, start, end)
    return {**figures, "energy_joules": grown}


def _figures(device: Device, runs: Sequence[Run], threshold: float) -> Figures:
    found: Figures = {"observed_seconds": _seen_seconds(device, runs)}
    for name, signal in AVERAGES.items():
        found[name] = _mean(_pieces(device, signal, runs))
    for name, signal in MAXIMA.items():
        found[name] = max((value for value, _ in _pieces(device, signal, runs)), default=None)
    for name in VIOLATIONS:
        found |= _violation(device, name, runs)
    found |= _throttling(device, runs)
    found |= _memory(device, runs, threshold)
    return found | _xid(device, runs)


def _pieces(device: Device, signal: str, runs: Sequence[Run]) -> list[tuple[float, float]]:
    """(value, seconds) of each span's part within each run."""
    found = []
    for run in runs:
        for span in device.signals.get(signal, []):
            part = overlap_seconds(span, run.start_ms, run.end_ms)
            if part > 0:
                found.append((span.value, part))
    return found


def _mean(pieces: list[tuple[float, float]]) -> float | None:
    total = math.fsum(part for _, part in pieces)
    return math.fsum(value * part for value, part in pieces) / total if total else None


def _share(pieces: list[tuple[bool, float]]) -> float | None:
    total = math.fsum(part for _, part in pieces)
    return math.fsum(part for is_so, part in pieces if is_so) / total if total else None


def _seen_seconds(device: Device, runs: Sequence[Run]) -> float:
    """The union over all signals of the spans within the runs, by sweeping over every bound."""
    every = [span for found in device.signals.values() for span in found]
    total = 0
    for run in runs:
        reached = run.start_ms
        for span in sorted(every, key=lambda span: span.start_ms):
            start, end = max(span.start_ms, reached), min(span.end_ms, run.end_ms)
            if end > start:
                total += end - start
                reached = end
    return total / 1000


def _violation(device: Device, name: str, runs: Sequence[Run]) -> Figures:
    parts = [linked_growth(device.signals.get(name, []), run.start_ms, run.end_ms) for run in runs]
    grown, over = (math.fsum(column) for column in zip(*parts, strict=True))
    return {f"{name}_ratio": grown / over if over else None, f"{name}_seconds": grown if over else None}


def _throttling(device: Device, runs: Sequence[Run]) -> Figures:
    pieces = [(int(value), part) for value, part in _pieces(device, "throttle_reasons", runs)]
    ratios: Figures = {f"{name}_ratio": _share([(mask & bit != 0, part) for mask, part in pieces]) for name, bit in BITS.items()}
    return ratios | {"any_throttle_ratio": _share([(mask & ANY_BIT != 0, part) for mask, part in pieces])}


def _memory(device: Device, runs: Sequence[Run], threshold: float) -> Figures:
    """used ÷ (used + free) wherever both are in force at once."""
    ratios = []
    free_spans = device.signals.get("fb_free", [])
    for used in device.signals.get("fb_used", []):
        for free in free_spans:
            start, end = max(used.start_ms, free.start_ms), min(used.end_ms, free.end_ms)
            if start < end and used.value + free.value > 0:
                both = Span(start, end, used.value / (used.value + free.value), None, None)
                ratios += [(both.value, part) for run in runs if (part := overlap_seconds(both, run.start_ms, run.end_ms)) > 0]
    return {
        "memory_used_ratio_avg": _mean(ratios),
        "memory_used_ratio_max": max((value for value, _ in ratios), default=None),
        "memory_pressure_ratio": _share([(value >= threshold, part) for value, part in ratios]),
    }


def _before_first(span: Span, device: Device) -> float:
    return span.value if span.start_ms == device.seen_ms[0] else 0.0


def _xid(device: Device, runs: Sequence[Run]) -> Figures:
    """Changes to a new code that is not 0; what stands at the device's first instant is no event."""
    found = device.signals.get("xid", [])
    codes = []
    for position, span in enumerate(found):
        before = found[position - 1].value if position else _before_first(span, device)
        is_owned = any(run.start_ms <= span.start_ms < run.end_ms for run in runs)
        if span.value not in (0.0, before) and is_owned:
            codes.append(int(span.value))
    return {"xid_error_count": len(codes) if found else None, "xid_codes": sorted(set(codes)) if found else None}
