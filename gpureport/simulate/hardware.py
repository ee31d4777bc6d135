"""Simulated GPU models: memory, power, clocks, and their MIG instances.

Idle power, memory and limits are of the order that the vendor's data sheets and public captures show.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MigProfile:
    """One MIG instance of a layout: its profile's name, GPU instance id, compute slices of 7, and memory."""

    name: str
    gpu_instance_id: int
    slices: int
    memory_mib: int


@dataclass(frozen=True)
class GpuModel:
    """A model as the driver prints it; memory in MiB, power in watts, clocks in MHz, links in bytes per second."""

    name: str
    memory_mib: int
    reserved_mib: int
    idle_watts: float
    limit_watts: float
    sm_clock_mhz: int
    memory_clock_mhz: int
    nvlink_bytes_per_second: float
    architecture: str
    compute_capability: str
    mig_layout: tuple[MigProfile, ...]

    @property
    def usable_mib(self) -> int:
        """Memory that used and free add up to."""
        return self.memory_mib - self.reserved_mib


def _layout(large: tuple[str, int], medium: tuple[str, int], small: tuple[str, int]) -> tuple[MigProfile, ...]:
    """Half a GPU, a quarter, and two eighths: the split that fills all seven compute slices."""
    return (
        MigProfile(large[0], 2, 3, large[1]),
        MigProfile(medium[0], 3, 2, medium[1]),
        MigProfile(small[0], 9, 1, small[1]),
        MigProfile(small[0], 10, 1, small[1]),
    )


_OF_80_GB = _layout(("3g.40gb", 40_192), ("2g.20gb", 19_968), ("1g.10gb", 9_728))
_OF_141_GB = _layout(("3g.71gb", 71_424), ("2g.35gb", 35_584), ("1g.18gb", 16_896))

H100 = GpuModel("NVIDIA H100 80GB HBM3", 81_559, 479, 70.0, 700.0, 1980, 2619, 100e9, "Hopper", "9.0.0", _OF_80_GB)
H200 = GpuModel("NVIDIA H200", 143_771, 615, 78.0, 700.0, 1980, 3201, 120e9, "Hopper", "9.0.0", _OF_141_GB)
A100 = GpuModel("NVIDIA A100-SXM4-80GB", 81_920, 653, 62.0, 400.0, 1410, 1593, 80e9, "Ampere", "8.0.0", _OF_80_GB)
L40S = GpuModel("NVIDIA L40S", 46_068, 599, 35.0, 350.0, 2520, 9001, 0.0, "Ada Lovelace", "8.9.0", ())

MODEL_OF_NODE = (H100, A100, H200, L40S, H100, A100, H100, H200)
"""Nodes take their model in turn."""

DRIVER_VERSION = "580.159.04"
