"""Load of a node's pods on its GPUs over one day, before noise: shares of each row's capacity, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpureport.simulate.inventory import SHARING_REPLICAS
from gpureport.simulate.story import Day
from gpureport.simulate.workload import Pod

Floats = NDArray[np.float64]

_THROTTLED_LOAD = 0.98
_BURST_SECONDS = 600


@dataclass(frozen=True)
class Load:
    """Rows × steps; ``throttle``: the share of time lost, by reason; ``pod_compute``: by uid of a pod that shares."""

    compute: Floats
    tensor: Floats
    dram: Floats
    link: Floats
    memory_mib: Floats
    held: Floats
    throttle: dict[str, Floats]
    pod_compute: dict[str, Floats] = field(default_factory=dict)


def day_load(day: Day) -> Load:
    """Add up what the pods of the day ask."""
    compute, tensor, dram, link, memory, held, power, thermal = np.zeros((8, len(day.node.rows), day.steps))
    load = Load(compute, tensor, dram, link, memory, held, {"power": power, "thermal": thermal})
    for pod in day.story.pods:
        span = day.span(pod)
        if span.start < span.stop:
            _add_pod(day, load, pod, span)
    return load


def _add_pod(day: Day, load: Load, pod: Pod, span: slice) -> None:
    seconds = day.start_ms // 1000 + np.arange(span.start, span.stop) * day.plan.step_seconds
    asked = _rhythm(pod, seconds)
    _throttle(day, load, pod, asked)
    if pod.slot.is_shared:
        asked /= SHARING_REPLICAS
        load.pod_compute[pod.uid] = asked
    for row in pod.slot.rows:
        load.compute[row, span] += asked
        load.tensor[row, span] += asked * pod.kind.tensor
        load.dram[row, span] += asked * pod.kind.dram
        load.link[row, span] += asked if len(pod.slot.rows) > 1 else 0.0
        load.memory_mib[row, span] += pod.memory_mib(row)
        load.held[row, span] = 1


def _rhythm(pod: Pod, seconds: NDArray[np.int64]) -> Floats:
    """The share of its slot that the pod asks at each of the seconds."""
    asked = np.full(seconds.size, pod.load)
    if pod.kind.rhythm == "daily":
        # Lowest at 03:00 UTC, highest at 15:00.
        asked *= 0.675 - 0.325 * np.cos(2 * np.pi * (seconds / 86_400 - 0.125))
    elif pod.kind.rhythm == "bursts":
        asked *= seconds // _BURST_SECONDS % 2
    return asked


def _throttle(day: Day, load: Load, pod: Pod, asked: Floats) -> None:
    if pod.phase is None:
        return
    phase, span = day.cut(pod.phase.start_step, pod.phase.end_step), day.span(pod)
    asked[phase.start - span.start : phase.stop - span.start] = _THROTTLED_LOAD
    load.throttle[pod.phase.reason][list(pod.slot.rows), phase] = pod.phase.ratio
