"""Amount of a request for Kubernetes' resources in each quota system, and its units in GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpureport.schedulers.nos import GPU_MEMORY, with_gpu_memory

FRACTION = "gpu-fraction"
"""GPUs that a pod requests by KAI's annotations."""
KAI_GPU = "gpu"

_REQUESTS = "requests."
_DEVICES = re.compile(r"[^/]*gpu[^/]*\.deviceclass\.resource\.k8s\.io/devices")
_MIG = re.compile(r"nvidia\.com/mig-(?:\d+c\.)?(\d+)g\.(\d+)gb.*")
_WHOLE = re.compile(
    r"(nvidia\.com|amd\.com|koordinator\.sh|gpu\.intel\.com|habana\.ai|aliyun\.com|intel\.com)/(gpu(\.shared)?|gaudi|i915|xe)"
)
_PERCENT = re.compile(r"(?:koordinator\.sh|kubernetes\.io|scheduling\.koordinator\.sh)/gpu(?:-core|-memory-ratio)?")
_NO_DEVICES = frozenset({"", "cpu", "memory", "pods", "storage", "ephemeral-storage"})
_STORAGE = ".storageclass.storage.k8s.io/"
_KAI_CPU, _KAI_MEMORY = 1e3, 1e-6


def native_requests(system: str, requests: Mapping[str, float | None], gb_per_gpu: float) -> dict[str, float]:
    """A request in base units by the names that the system's quotas use for resources.

    nos adds gpu-memory in GB; a ResourceQuota names what it limits ``requests.…``; KAI knows gpu (whole ones, MIG instances by
    their slices, fractions), cpu in thousandths and memory in 10^6 bytes.
    """
    known = {name: amount for name, amount in requests.items() if amount is not None}
    if system == "nos":
        return _with_memory(known, gb_per_gpu)
    if system == "kubernetes":
        return {**known, **{f"{kind}{name}": amount for name, amount in known.items() for kind in (_REQUESTS, "limits.")}}
    if system == "kai":
        return _kai(known, gb_per_gpu)
    return known


def _with_memory(known: dict[str, float], gb_per_gpu: float) -> dict[str, float]:
    """A request that counts no GB is known to count none."""
    return {GPU_MEMORY: 0.0, **with_gpu_memory(known, int(gb_per_gpu))}


def _kai(known: Mapping[str, float], gb_per_gpu: float) -> dict[str, float]:
    gpus = known.get(FRACTION, 0.0) + sum(
        amount * (gpu_units(name, gb_per_gpu) or 0.0) for name, amount in sorted(known.items()) if name.startswith("nvidia.com/")
    )
    return {KAI_GPU: gpus, "cpu": known.get("cpu", 0.0) * _KAI_CPU, "memory": known.get("memory", 0.0) * _KAI_MEMORY}


def gpu_units(resource: str, gb_per_gpu: float) -> float | None:
    """GPUs that one unit of a quota's resource is; None where it is no accelerator's, or its part of one is not known.

    A replica of a shared GPU counts as it is offered, for what it is of a GPU is not said.
    """
    name = resource.removeprefix(_REQUESTS)
    if name == GPU_MEMORY:
        return 1 / gb_per_gpu
    if name in (KAI_GPU, FRACTION) or _DEVICES.fullmatch(name):
        return 1.0
    if _PERCENT.fullmatch(name):
        return 0.01
    if found := _MIG.fullmatch(name):
        return int(found[1]) / _slices(int(found[1]), int(found[2]))
    return 1.0 if _WHOLE.fullmatch(name) else None


def is_device(system: str, resource: str) -> bool:
    """Whether a quota on this resource is one on devices of some kind: all but what every node has, objects and storage.

    Kueue's administrators name resources as they like, so a name without a domain is one there.
    """
    name = resource.removeprefix(_REQUESTS).removeprefix("limits.")
    if name in _NO_DEVICES or name.startswith(("count/", "hugepages-", "attachable-volumes-")) or _STORAGE in name:
        return False
    return "/" in name or name == KAI_GPU or system == "kueue"


def _slices(slices: int, gb: int) -> int:
    """Compute slices of a whole GPU: four of an A30 (1g.6gb, 2g.12gb, 4g.24gb), else seven."""
    return 4 if gb == 6 * slices else 7


def native_unit(resource: str) -> str:
    """Unit of the resource in words."""
    name = resource.removeprefix(_REQUESTS)
    if name == GPU_MEMORY:
        return "GB"
    if _PERCENT.fullmatch(name):
        return "% of a GPU"
    if _MIG.fullmatch(name):
        return "MIG instance"
    return "device" if gpu_units(resource, 1) else "unit"
