"""Samples → devices: one value per signal and instant, and who was named on the device when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from oracle.samples import Sample
from oracle.spans import Span, spans

MIB = 1024.0**2
# Metric → signal, factor to SI, whether it is the whole board's. From the DCGM field reference.
SIGNALS: dict[str, tuple[str, float, bool]] = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_joules", 1e-3, True),
    "DCGM_FI_DEV_POWER_USAGE": ("power_watts", 1, True),
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_util", 1e-2, True),
    "DCGM_FI_DEV_FB_USED": ("fb_used", MIB, False),
    "DCGM_FI_DEV_FB_FREE": ("fb_free", MIB, False),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gr_engine_active", 1, False),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", 1, False),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy", 1, False),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active", 1, False),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active", 1, False),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx", 1, True),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx", 1, True),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_tx", 1, True),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("nvlink_rx", 1, True),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_reasons", 1, True),
    "DCGM_FI_DEV_POWER_VIOLATION": ("power_violation", 1e-9, True),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("thermal_violation", 1e-9, True),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": ("sync_boost_violation", 1e-9, True),
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": ("board_limit_violation", 1e-9, True),
    "DCGM_FI_DEV_XID_ERRORS": ("xid", 1, True),
}
POD_SCOPE_METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")

Owner = tuple[str, str, str, str]
"""namespace, pod, pod_uid, container"""


@dataclass(frozen=True)
class Run:
    """[start_ms, end_ms) in which an owner was named on a device."""

    start_ms: int
    end_ms: int


@dataclass
class Device:
    """One GPU: spans by signal, runs by owner, and the instants at which anything of it was seen."""

    signals: dict[str, list[Span]] = field(default_factory=dict)
    owners: dict[Owner, list[Run]] = field(default_factory=dict)
    seen_ms: list[int] = field(default_factory=list)


def devices(samples: list[Sample]) -> dict[str, Device]:
    """Whole GPUs by UUID. Every metric must come from one scrape target, as in the recording."""
    by_device: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.metric in SIGNALS:
            by_device[sample.label("UUID")].append(sample)
    return {uuid: _device(found) for uuid, found in by_device.items()}


def _device(samples: list[Sample]) -> Device:
    device = Device(seen_ms=sorted({sample.time_ms for sample in samples}))
    for metric in sorted({sample.metric for sample in samples}):
        signal, factor, _ = SIGNALS[metric]
        own = [sample for sample in samples if sample.metric == metric]
        values = {sample.time_ms: sample.value * factor for sample in without_pod_scope(own) if sample.value == sample.value}
        device.signals[signal] = spans(values, [], None)
    named: dict[Owner, set[int]] = defaultdict(set)
    for sample in samples:
        if sample.label("pod"):
            named[owner_of(sample)].add(sample.time_ms)
    device.owners = {owner: runs(device.seen_ms, times) for owner, times in named.items()}
    return device


def owner_of(sample: Sample) -> Owner:
    """Who is named on a sample."""
    return sample.label("namespace"), sample.label("pod"), sample.label("pod_uid"), sample.label("container")


def without_pod_scope(samples: list[Sample]) -> list[Sample]:
    """GPU_UTIL and FB_USED of pods put aside where the device's own, without a pod, stands at one of their instants."""
    if samples[0].metric not in POD_SCOPE_METRICS:
        return samples
    bare = [sample for sample in samples if not sample.label("pod")]
    named = {sample.time_ms for sample in samples if sample.label("pod")}
    return bare if named & {sample.time_ms for sample in bare} else samples


def runs(seen_ms: list[int], named_ms: set[int]) -> list[Run]:
    """Stretches of the device's instants at which the owner was named, up to the next instant or one median step."""
    step = int(median([after - before for before, after in pairwise(seen_ms)]))
    found: list[Run] = []
    for position, instant in enumerate(seen_ms):
        if instant not in named_ms:
            continue
        last = position + 1 == len(seen_ms)
        end = instant + step if last else min(seen_ms[position + 1], instant + 3 * step)
        if found and found[-1].end_ms == instant:
            found[-1] = Run(found[-1].start_ms, end)
        else:
            found.append(Run(instant, end))
    return found
