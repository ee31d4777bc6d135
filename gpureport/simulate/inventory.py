"""Nodes, GPUs and MIG instances, each determined only by the plan and its own number.

Idle power, memory and limits are similar to values in vendor data sheets and public captures.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Literal

import numpy as np

from gpureport.simulate.plan import GPUS_PER_NODE, SimulationPlan

Role = Literal["ordinary", "troubled", "rack", "stranded"]

CUT_GPU = GPUS_PER_NODE - 1
"""Index of the GPU of a troubled node that is only partly divided into MIG instances."""
SICK_GPU = 3
_TROUBLED_EVERY = 8
_STRANDED_EVERY = 16
_RACK_SHARE = 10


def role(plan: SimulationPlan, node_index: int) -> Role:
    """Return a node's role; in scenarios other than review, all nodes are ordinary.

    troubled: one node with an idle holder, a bandwidth-bound workload, a sick GPU, a starved team and a partly divided GPU.
    rack: a tenth of the nodes, hot in the same hours. stranded: less than half is made into MIG instances, all of them free.
    """
    if plan.scenario != "review":
        return "ordinary"
    if node_index % _TROUBLED_EVERY == 1 and (node_index + 1) * GPUS_PER_NODE <= plan.gpus:
        return "troubled"
    if 2 <= node_index < 2 + max(1, plan.node_count // _RACK_SHARE):
        return "rack"
    return "stranded" if node_index % _STRANDED_EVERY == 12 else "ordinary"


def is_cut(plan: SimulationPlan, node_index: int, gpu_index: int) -> bool:
    """Return whether only the first instance of the model's MIG layout exists on the GPU."""
    found = role(plan, node_index)
    return found == "stranded" or (found == "troubled" and gpu_index == CUT_GPU)


@dataclass(frozen=True)
class MigProfile:
    """One MIG instance of a layout: profile name, GPU instance id, compute slices (of 7) and memory."""

    name: str
    gpu_instance_id: int
    slices: int
    memory_mib: int


@dataclass(frozen=True)
class GpuModel:
    """A model with its name from the driver; memory in MiB, power in watts, clocks in MHz, links in bytes per second."""

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
        """Return the sum of used and free memory."""
        return self.memory_mib - self.reserved_mib


def _layout(large: tuple[str, int], medium: tuple[str, int], small: tuple[str, int]) -> tuple[MigProfile, ...]:
    """Return half a GPU, a quarter, and two eighths by memory; together they use all seven compute slices."""
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
"""Models of consecutive nodes, in a repeating cycle."""

DRIVER_VERSION = "580.159.04"


SHARING_REPLICAS = 4
SHARED_MEMORY_RATIO = 1 / SHARING_REPLICAS


def stable_uuid(plan: SimulationPlan, *parts: object) -> str:
    """Return a uuid that depends only on seed and parts, on every machine."""
    digest = hashlib.sha256("/".join(map(str, (plan.seed, *parts))).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def random(plan: SimulationPlan, *parts: int) -> np.random.Generator:
    """Return a generator for one purpose, node and day, independent of all previous draws."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([plan.seed, *parts])))


@dataclass(frozen=True)
class Gpu:
    """A physical GPU of a node."""

    index: int
    uuid: str
    model: GpuModel
    is_shared: bool
    instances: tuple[MigProfile, ...]

    @property
    def pci_bus_id(self) -> str:
        """Return the PCI address as the exporter prints it."""
        return f"00000000:{0x19 + 0x11 * self.index:02X}:00.0"


@dataclass(frozen=True)
class Row:
    """Row of a node's arrays: a whole GPU, or one of its MIG instances."""

    gpu: Gpu
    instance: MigProfile | None

    @property
    def gpu_instance_id(self) -> str:
        """Return the GPU instance id as in labels and the lake; '' for a whole GPU."""
        return str(self.instance.gpu_instance_id) if self.instance else ""

    @property
    def usable_mib(self) -> int:
        """Return the sum of used and free memory."""
        return self.instance.memory_mib if self.instance else self.gpu.model.usable_mib


@dataclass(frozen=True)
class Node:
    """A node and its GPUs."""

    index: int
    name: str
    uid: str
    is_dra: bool
    gpus: tuple[Gpu, ...]

    @property
    def model(self) -> GpuModel:
        """Return the GPU model; all GPUs of a node have the same."""
        return self.gpus[0].model

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return GPUs and instances in the order of the arrays; a divided GPU is represented only by its instances."""
        return tuple(Row(gpu, instance) for gpu in self.gpus for instance in (gpu.instances or (None,)))

    @property
    def instance_type(self) -> str:
        """Return the machine type for the node's label."""
        return f"{self.model.name.removeprefix('NVIDIA ').split()[0].split('-')[0].lower()}.{len(self.gpus)}x"


def make_node(plan: SimulationPlan, index: int) -> Node:
    """Return one node, independent of the others."""
    first = index * GPUS_PER_NODE
    is_dra = _is_chosen(index, plan.dra_share, 0.75)
    gpus = tuple(_gpu(plan, number, index, is_dra) for number in range(first, min(plan.gpus, first + GPUS_PER_NODE)))
    return Node(index, f"gpu-node-{index}", stable_uuid(plan, "node", index), is_dra, gpus)


def _gpu(plan: SimulationPlan, number: int, node_index: int, is_dra: bool) -> Gpu:
    model = MODEL_OF_NODE[node_index % len(MODEL_OF_NODE)]
    # Nodes with DRA have whole GPUs: their exporter versions lose labels of divided and shared GPUs. Planted workloads on
    # troubled and rack nodes also need whole GPUs.
    is_whole = is_dra or role(plan, node_index) in ("troubled", "rack")
    is_split = not is_whole and bool(model.mig_layout) and _is_chosen(number, plan.mig_share, 0.5)
    is_shared = not is_whole and not is_split and _is_chosen(number, plan.sharing_share, 0.9)
    instances = model.mig_layout if is_split else ()
    if is_cut(plan, node_index, number % GPUS_PER_NODE):
        instances = model.mig_layout[:1]
    return Gpu(number % GPUS_PER_NODE, f"GPU-{stable_uuid(plan, 'gpu', number)}", model, is_shared, instances)


def _is_chosen(number: int, share: float, phase: float) -> bool:
    """Return whether a number is chosen: every 1/share-th, spread evenly; the phase selects some in small clusters too."""
    return floor((number + 1) * share + phase) > floor(number * share + phase)
