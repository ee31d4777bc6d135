"""Utilisation, saturation and errors of a row of the report: its value and how well it is known, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpureport import formats
from gpureport.figures import FIGURES, REASONS

_SEEN_AS = {
    # figure: beginning of the column with the seconds behind it, where that is not the figure's own
    "memory_used_ratio_avg": "memory",
    "memory_used_ratio_max": "memory",
    "memory_pressure_ratio": "memory",
    "any_throttle_ratio": "throttle",
    "hw_slowdown_ratio": "throttle",
    "sw_power_cap_ratio": "throttle",
    "hw_thermal_ratio": "throttle",
}
_STRIP = {
    "Utilisation": (
        ("gpu_util_ratio_avg", "GPU utilisation"),
        ("gpu_usage_avg", "engine active"),
        ("sm_active_avg", "SMs active"),
        ("sm_occupancy_avg", "SM occupancy"),
        ("tensor_active_avg", "tensor pipe"),
        ("dram_active_avg", "memory bandwidth"),
        ("memory_used_ratio_avg", "memory held"),
    ),
    "Saturation": (
        ("memory_used_ratio_max", "memory, largest"),
        ("memory_pressure_ratio", "time near full memory"),
        ("any_throttle_ratio", "time throttled"),
        ("power_violation_ratio", "held back by power"),
        ("thermal_violation_ratio", "held back by heat"),
        ("pcie_tx_ratio_avg", "PCIe to host"),
    ),
    "Errors": (
        ("xid_error_count", "XID errors, at least"),
        ("xid_codes", "their codes"),
        ("hw_slowdown_ratio", "hardware slowdown"),
        ("pcie_replay_count", "PCIe retransmissions"),
    ),
}


_BESIDE = {"duty_cycle_percent": "duty cycle"}
"""Of the rows below a strip."""


@dataclass(frozen=True)
class Meaning:
    """What a figure of the cards is: its name in the files, formula, and when there is none."""

    title: str
    name: str
    formula: str
    absent: str


def meanings() -> tuple[Meaning, ...]:
    """Of every figure of a card, in its order."""
    titles = {name: title for figures in _STRIP.values() for name, title in figures} | _BESIDE
    return tuple(
        Meaning(title, name, FIGURES[name].formula, FIGURES[name].absent or "no sample of its signals")
        for name, title in titles.items()
    )


@dataclass(frozen=True)
class Figure:
    """A figure of the strip: value with unit; ``coverage``: on what part of the time it rests; ``reason``: why it is unknown."""

    name: str
    title: str
    value: str
    coverage: str
    reason: str
    share: float | None
    """0..100 for a bar under a percentage."""


@dataclass(frozen=True)
class Strip:
    """One of the three."""

    title: str
    figures: tuple[Figure, ...]


def use_strip(row: Mapping[str, Any], reasons: Mapping[str, str]) -> tuple[Strip, ...]:
    """The three of a row of report.container, container_saturation or device; figures that its table lacks are left out."""
    return tuple(
        Strip(title, tuple(_figure(row, reasons, name, told) for name, told in figures if name in row))
        for title, figures in _STRIP.items()
    )


def _figure(row: Mapping[str, Any], reasons: Mapping[str, str], name: str, title: str) -> Figure:
    found = row[name]
    text, unit = formats.value(name, found), formats.unit(name)
    reason = reasons.get(name, "") if found is None else ""
    is_share = unit == "%" and isinstance(found, float)
    return Figure(
        name=name,
        title=title,
        value=f"{text} {unit}" if unit and found is not None else text,
        coverage="" if found is None else _coverage(row, name),
        reason=REASONS.get(reason, formats.words(reason)) if reason else "",
        share=round(min(found, 1.0) * 100, 1) if is_share else None,
    )


def _coverage(row: Mapping[str, Any], name: str) -> str:
    """Which part of the seen time the figure rests on; '' where the table does not tell, or it is all of it."""
    stem = _SEEN_AS.get(name) or name.removesuffix("_avg").removesuffix("_ratio")
    seen = row.get(f"{stem}_seen_seconds")
    whole = row.get("device_seconds") or row.get("observed_seconds")
    if seen is None or not whole or seen >= 0.999 * whole:
        return ""
    return f"known for {formats.percent(seen / whole)} of the seen time"
