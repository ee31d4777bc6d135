"""Whether an era's report says what the original's does: every column, or null with the reason that the era is to blame for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from golden_case import Row

from eras.rewriting import Told
from gpureport.values.catalog import FIGURES

SAME = 1e-6
ANY = object()
"""Of a column of which an era's report may say what it likes."""
EMPTY_OR_SAME = object()
"""Of a text that the era's labels lack, and that other evidence may supply."""

KEYS = {
    "container_saturation": ("namespace", "pod", "container", "device_uuid", "gpu_instance_id"),
    "container": ("namespace", "pod", "container"),
    "device": ("device_uuid", "gpu_instance_id"),
}
THROTTLE = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "any_throttle")
VIOLATION = ("power", "thermal", "sync_boost", "board_limit")
# Which columns stand and fall with a signal; companions of a ratio are its seconds.
COLUMNS = {
    "unheld": ("unallocated_seconds",),
    "gpu_usage": ("gpu_usage_avg", "gpu_usage_seen_seconds"),
    "sm_active": ("sm_active_avg", "sm_active_max", "sm_active_seen_seconds"),
    "sm_occupancy": ("sm_occupancy_avg", "sm_occupancy_seen_seconds"),
    "tensor_active": ("tensor_active_avg", "tensor_active_seen_seconds"),
    "dram_active": ("dram_active_avg", "dram_active_max", "dram_active_seen_seconds"),
    "memory": (
        "memory_used_ratio_avg",
        "memory_used_ratio_max",
        "memory_pressure_ratio",
        "memory_pressure_seconds",
        "memory_seen_seconds",
    ),
    "memory_total": ("memory_total_bytes",),
    "gpu_util": ("gpu_util_ratio_avg", "gpu_util_seen_seconds"),
    "pcie": (
        "pcie_tx_bytes_per_second_avg",
        "pcie_rx_bytes_per_second_avg",
        "pcie_tx_ratio_avg",
        "pcie_rx_ratio_avg",
        "pcie_tx_seen_seconds",
        "pcie_rx_seen_seconds",
    ),
    "nvlink": (
        "nvlink_tx_bytes_per_second_avg",
        "nvlink_rx_bytes_per_second_avg",
        "nvlink_tx_ratio_avg",
        "nvlink_rx_ratio_avg",
        "nvlink_tx_seen_seconds",
        "nvlink_rx_seen_seconds",
    ),
    "throttle": ("throttle_seen_seconds", *(f"{name}_{unit}" for name in THROTTLE for unit in ("ratio", "seconds"))),
    "violations": (
        "any_throttle_ratio_min",
        *(f"{cause}_violation_{unit}" for cause in VIOLATION for unit in ("ratio", "seconds", "seen_seconds")),
    ),
    "xid": ("xid_error_count", "xid_codes"),
    "energy": ("energy_joules", "energy_seen_seconds"),
    "attribution": ("idle_joules", "attributed_joules", "unattributed_joules", "closing_error_joules"),
    "counter": ("counter_joules", "integral_joules", "counter_difference_joules"),
    "power": ("power_watts_avg", "power_watts_max", "power_seen_seconds"),
    "temperature": ("gpu_temp_celsius_avg", "gpu_temp_celsius_max"),
    "clocks": ("sm_clock_hertz_avg", "sm_clock_hertz_max", "memory_clock_hertz_avg", "memory_clock_hertz_max"),
    "pcie_replay": ("pcie_replay_count",),
}
IN_JOULES = (
    "energy_joules",
    "idle_joules",
    "attributed_joules",
    "unattributed_joules",
    "counter_joules",
    "counter_difference_joules",
)


@dataclass(frozen=True)
class Era:
    """A way to tell the recording, and what cannot survive it."""

    rewrite: Callable[[Told], Told]
    lost: Mapping[str, str] = field(default_factory=dict)
    """Signals (keys of COLUMNS) that the era does not tell → the reason that the report must give."""
    says: Mapping[str, object] = field(default_factory=dict)
    """Columns that rightly say something else than in the original."""
    energy_within_joules: float = 0.0
    may_lack_containers: bool = False
    """Whether some holders are never named: their rows may be missing, those that are there must be right."""
    keeps_reasons: bool = True
    """Whether what the original does not know either is unknown for the same reason."""


def differences(table: str, era: Era, expected: list[Row], found: list[Row]) -> list[str]:
    """One line for each cell that says something that the original does not."""
    wanted, told = by_key(table, expected), by_key(table, found)
    wrong = [f"{key}: not in the original" for key in told.keys() - wanted.keys()]
    if not (era.may_lack_containers and table != "device"):
        wrong += [f"{key}: missing" for key in wanted.keys() - told.keys()]
    for key in wanted.keys() & told.keys():
        wrong += [f"{key}: {line}" for line in row_differences(era, wanted[key], told[key])]
    return wrong


def by_key(table: str, rows: list[Row]) -> dict[tuple[str, ...], Row]:
    found = {tuple(row[name] for name in KEYS[table]): row for row in rows}
    assert len(found) == len(rows), f"{table}: a key stands twice"
    return found


def row_differences(era: Era, expected: Row, found: Row) -> list[str]:
    """Every column but the cluster's name, the reasons of figures that are null in both, and where values came from."""
    lost = {column: reason for signal, reason in era.lost.items() for column in COLUMNS[signal]}
    wrong = []
    for name, value in expected.items():
        if name in ("cluster", "unknown_reasons") or name.startswith("source"):
            continue
        if name in lost:
            wrong += lost_differences(name, lost[name], found)
        elif not is_as_said(name, era, value, found[name]):
            wrong.append(f"{name}: {found[name]!r}, not {value!r}")
        elif name in FIGURES and found[name] is None:
            wrong += reason_differences(name, era, expected, found)
    return wrong


def reason_differences(name: str, era: Era, expected: Row, found: Row) -> list[str]:
    """A null figure has a reason, and the original's."""
    wanted, said = expected["unknown_reasons"].get(name), found["unknown_reasons"].get(name)
    is_right = said == wanted if era.keeps_reasons else bool(said)
    return [] if is_right else [f"{name}: null for {said}, not {wanted}"]


def lost_differences(name: str, reason: str, found: Row) -> list[str]:
    """A lost figure is null and says why; the seconds in which it was known are none."""
    if name not in FIGURES:
        return [] if not found[name] else [f"{name}: {found[name]!r}, but nothing is known of it"]
    if found[name] is not None:
        return [f"{name}: {found[name]!r}, not null"]
    said = found["unknown_reasons"].get(name)
    return [] if said == reason else [f"{name}: null for {said}, not {reason}"]


def is_as_said(name: str, era: Era, expected: object, found: object) -> bool:
    rule = era.says.get(name, expected)
    if rule is ANY:
        return True
    if rule is EMPTY_OR_SAME:
        return found in ("", expected)
    if name in IN_JOULES and era.energy_within_joules and found is not None:
        return bool(found == pytest.approx(rule, abs=era.energy_within_joules, rel=0))
    if isinstance(rule, float) and found is not None:
        return bool(found == pytest.approx(rule, rel=SAME, abs=1e-9))
    return bool(found == rule)
