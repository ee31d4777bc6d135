"""The same figures in the shapes that other tools read: OpenCost's GPU allocation and cAdvisor's accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

CONTAINER = ("cluster", "namespace", "pod", "pod_uid", "container")
_VIOLATIONS = ("power", "thermal", "sync_boost", "board_limit")
_REASONS = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")
_FIGURES = {
    # OpenCost's name: our column
    "memoryUsedRatioAvg": "memory_used_ratio_avg",
    "memoryUsedRatioMax": "memory_used_ratio_max",
    "memoryPressureRatio": "memory_pressure_ratio",
    "xidErrorCount": "xid_error_count",
    "dramActiveAvg": "dram_active_avg",
    "dramActiveMax": "dram_active_max",
    "smActiveAvg": "sm_active_avg",
    "smOccupancyAvg": "sm_occupancy_avg",
    "pcieTxBytesAvg": "pcie_tx_bytes_per_second_avg",
    "pcieRxBytesAvg": "pcie_rx_bytes_per_second_avg",
    "nvlinkTxBytesAvg": "nvlink_tx_bytes_per_second_avg",
    "nvlinkRxBytesAvg": "nvlink_rx_bytes_per_second_avg",
}


def allocations(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One entry per row of report.container_saturation; what is unknown is absent, its reason under ``coverage``."""
    return map(_allocation, rows)


def accelerators(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One entry per container of report.accelerator with cAdvisor's ``accelerators[]``: integers, absent where unknown."""
    return (
        {**dict(zip(CONTAINER, names, strict=True)), "accelerators": [_accelerator(row) for row in found]}
        for names, found in groupby(rows, key=lambda row: tuple(row[name] for name in CONTAINER))
    )


def _allocation(row: Mapping[str, Any]) -> dict[str, Any]:
    gpu = {
        "gpuDevice": row["gpu_device"],
        "gpuModel": row["gpu_model"],
        "gpuUUID": row["device_uuid"],
        "gpuUsageAverage": row["gpu_usage_avg"],
        "saturation": _known(_saturation(row)),
    }
    return {
        **{name: row[name] for name in CONTAINER},
        "gpuInstanceId": row["gpu_instance_id"],
        "observedSeconds": row["observed_seconds"],
        "sharingMode": row["sharing_mode"],
        "gpuAllocation": _known(gpu),
        "coverage": dict(sorted(row["unknown_reasons"].items())),
    }


def _saturation(row: Mapping[str, Any]) -> dict[str, Any]:
    violations = _known({name: row[f"{name}_violation_ratio"] for name in _VIOLATIONS})
    throttles = _known({name: row[f"{name}_ratio"] for name in _REASONS})
    return {
        "throttleViolationRatios": violations or None,
        "throttleReasonRatios": throttles or None,
        **{name: row[column] for name, column in _FIGURES.items()},
    }


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in values.items() if found is not None}


def _accelerator(row: Mapping[str, Any]) -> dict[str, Any]:
    """cAdvisor's fields, and beside them whose each figure is, so that nobody adds a device's up over its sharers."""
    duty_cycle = row["duty_cycle_percent"]
    fields = {
        "make": row["make"] or None,
        "model": row["model"] or None,
        "id": row["id"],
        "gpu_instance_id": row["gpu_instance_id"] or None,
        "memory_total": row["memory_total_bytes"],
        "memory_used": row["memory_used_bytes"],
        "duty_cycle": None if duty_cycle is None else round(duty_cycle),
        "memory_total_scope": row["memory_total_scope"],
        "memory_scope": row["memory_scope"],
        "duty_cycle_scope": row["duty_cycle_scope"],
    }
    return _known(fields)
