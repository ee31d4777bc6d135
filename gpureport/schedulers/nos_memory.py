"""Resource nos.nebuly.com/gpu-memory of a pod's requests under nos, in GB.

Source: nos, the calculator that its scheduler and its operator share (12e0a72, 2024-04). Requests count, never limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

GPU = "nvidia.com/gpu"
GPU_MEMORY = "nos.nebuly.com/gpu-memory"
DEFAULT_GPU_MEMORY_GB = 32
"""Setting of the installation chart; scheduler and operator have separate settings that must be equal."""

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")
_SIZE = re.compile(r"(\d+)gb")


def mig_memory_gb(resource: str) -> int:
    """GB that one unit of a MIG resource counts; 0 for a name that the original does not understand.

    The name is searched, not matched as a whole: ``mig-1g.5gb.me`` is 5. Two sizes in one name are an error that the original
    swallows, so they count 0; a compute instance (``mig-1c.2g.10gb``) is no MIG resource to it.
    """
    sizes = _SIZE.findall(resource) if _MIG.search(resource) else []
    return int(sizes[0]) if len(sizes) == 1 else 0


def gpu_memory_gb(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> float:
    """GB of gpu-memory that the original computes from a pod's requests."""
    return sum(
        amount * (gb_per_gpu if resource == GPU else mig_memory_gb(resource)) for resource, amount in sorted(requests.items())
    )


def uncounted(requests: Mapping[str, float]) -> tuple[str, ...]:
    """GPU resources of the request that count 0 GB although they hold memory of a GPU.

    Slices of nos' own MPS partitioning (``gpu-10gb``), time-sliced replicas (``gpu.shared``) and MIG names it does not
    understand. Devices of resource claims are no requests and are not here.
    """
    return tuple(
        resource
        for resource, amount in sorted(requests.items())
        if amount > 0 and resource.startswith("nvidia.com/") and resource != GPU and not mig_memory_gb(resource)
    )


def pod_request(
    containers: Iterable[Mapping[str, float]],
    init_containers: Iterable[Mapping[str, float]] = (),
    gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB,
) -> dict[str, float]:
    """A pod's request as the original reckons it, gpu-memory with it.

    The larger, resource by resource, of the containers' sum and the largest init container. Sidecars are init containers like
    others here, and the pod's overhead is never counted: the original adds it and drops the result.
    """
    request: dict[str, float] = {}
    for container in containers:
        for resource, amount in container.items():
            request[resource] = request.get(resource, 0) + amount
    for container in init_containers:
        for resource, amount in container.items():
            request[resource] = max(request.get(resource, 0), amount)
    return with_gpu_memory(request, gb_per_gpu)


def with_gpu_memory(requests: Mapping[str, float], gb_per_gpu: int = DEFAULT_GPU_MEMORY_GB) -> dict[str, float]:
    """The request with what nos adds to it; a pod without GPUs has no gpu-memory."""
    memory = gpu_memory_gb(requests, gb_per_gpu)
    return {**requests, GPU_MEMORY: memory} if memory else dict(requests)
