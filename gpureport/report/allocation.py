"""The same figures in the shapes that other tools read: OpenCost's GPU allocation and cAdvisor's accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpureport.report.results import Result

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


def allocations(saturation: Result, devices: Result | None) -> list[dict[str, Any]]:
    """One entry per container and device; what is unknown is absent, and named with its reason under ``coverage``."""
    memory = _device_memory(devices)
    found = []
    for number, row in enumerate(saturation.rows.iter_rows(named=True)):
        reasons = saturation.reasons[number]
        found.append({**_allocation(row, reasons), "accelerators": [_accelerator(row, memory)]})
    return found


def _allocation(row: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    identity = ("cluster", "namespace", "pod", "pod_uid", "container")
    gpu = {
        "gpuDevice": row["gpu_device"],
        "gpuModel": row["gpu_model"],
        "gpuUUID": row["device_uuid"],
        "gpuUsageAverage": row["gpu_usage_avg"],
        "saturation": _known(_saturation(row)),
    }
    return {
        **{name: row[name] for name in identity},
        "gpuInstanceId": row["gpu_instance_id"],
        "observedSeconds": row["observed_seconds"],
        "sharingMode": row["sharing_mode"],
        "gpuAllocation": _known(gpu),
        "coverage": dict(sorted(reasons.items())),
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


def _device_memory(devices: Result | None) -> dict[tuple[str, str, str], float | None]:
    """Total memory in bytes, by cluster, device and instance."""
    if devices is None:
        return {}
    keys = ("cluster", "device_uuid", "gpu_instance_id")
    rows = devices.rows.iter_rows(named=True)
    return {tuple(row[key] for key in keys): row["memory_total_bytes"] for row in rows}


def _accelerator(row: Mapping[str, Any], memory: Mapping[tuple[str, str, str], float | None]) -> dict[str, Any]:
    """cAdvisor's fields (bytes, percent). Memory is the device's, as ``scope`` says, so that nobody adds it up; what is in
    use is the mean ratio of the total, so reserved memory counts in proportion.
    """
    total = memory.get((row["cluster"], row["device_uuid"], row["gpu_instance_id"]))
    usage, ratio = row["gpu_usage_avg"], row["memory_used_ratio_avg"]
    return _known(
        {
            "make": "nvidia" if row["gpu_model"] else None,
            "model": row["gpu_model"] or None,
            "id": row["device_uuid"],
            "memory_total": None if total is None else round(total),
            "memory_used": None if total is None or ratio is None else round(total * ratio),
            "duty_cycle": None if usage is None else round(usage * 100),
            "scope": row["memory_scope"],
        }
    )
