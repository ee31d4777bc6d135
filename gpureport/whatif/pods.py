"""What-if of pods: stopped once idle, without the GPUs that they never used, or on MIG instances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from math import inf

from gpureport.config.findings import mig_profiles
from gpureport.values.errors import UsageError
from gpureport.whatif.placement import Pod, Scene

_UNITS = {"m": 60, "min": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class PodChange:
    """Changes of pods."""

    idle_timeout_seconds: float | None = None
    """A pod ends when all its GPUs have been idle for so long."""
    returns_idle: bool = False
    """A pod has only as many GPUs as it ever used, and one that used none is not there."""
    slices: tuple[tuple[str, str], ...] = ()
    """MIG profiles, each with a pattern of namespace/workload whose pods have an instance in place of each whole GPU."""

    @property
    def needs_activity(self) -> bool:
        """Whether it depends on what GPUs did."""
        return self.returns_idle or self.idle_timeout_seconds is not None

    def of(self, scene: Scene) -> Scene:
        """The scene with pods as they would have been; UsageError where no GPU of such a workload has the profile."""
        models = {node.name: node.gpu_model for node in scene.nodes}
        fitted = set()
        pods = []
        for pod in scene.pods:
            gpus, requested, end = pod.gpus, pod.requested, pod.end
            if self.returns_idle and pod.use.ratio is not None:
                gpus, requested = gpus * pod.use.ratio, requested and requested.times(pod.use.ratio)
            name = pod.node or next(iter(scene.places.get(pod.kind, ())), "")
            for profile, pattern in self.slices:
                part = _part(models.get(name, ""), profile)
                if part and gpus >= 1 and fnmatchcase(pod.use.workload, pattern):
                    gpus, requested = gpus * part, None
                    fitted.add((profile, pattern))
            if self.idle_timeout_seconds is not None:
                end = _stop(pod, self.idle_timeout_seconds) or end
            pods.append(pod._replace(gpus=gpus, requested=requested, end=end))
        for profile, pattern in sorted({*self.slices} - fitted):
            raise UsageError(f"--mig {profile} for {pattern}: no pod of such a workload has whole GPUs of a model with it")
        return replace(scene, pods=pods)


@cache
def _part(model: str, profile: str) -> float | None:
    """Of a GPU: as many such instances as the model can have make one; None where it has no such profile."""
    rows = (each for each in mig_profiles() if fnmatchcase(model, each["gpu_model"]) and each["profile"] == profile)
    return next((1 / float(each["instances_max"]) for each in rows), None)


def _stop(pod: Pod, timeout: float) -> float | None:
    """First time at which it was idle for so long; None where it never was."""
    runs = ((max(since, pod.start or since), min(until, pod.end or inf)) for since, until in pod.use.idle)
    return next((since + timeout for since, until in runs if since + timeout <= until), None)


def parse_duration(text: str, flag: str = "--idle-timeout") -> float:
    """``2h``, ``90min`` or ``1d`` in s; UsageError for anything else."""
    parts = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(m|min|h|d)", text)
    if not parts or not float(parts[1]):
        raise UsageError(f"{flag} {text!r} is no duration; write it like 2h, 90min or 1d")
    return float(parts[1]) * _UNITS[parts[2]]


def returned_gpu_hours(before: Scene, after: Scene, starts: Sequence[float | None]) -> dict[str, float]:
    """By node on which pods ran, GPU-hours of the window that they would not have had, had they begun at these times."""
    found: dict[str, float] = {}
    for pod, other, start in zip(before.pods, after.pods, starts, strict=True):
        if start is not None and pod != other:
            found[pod.node] = found.get(pod.node, 0.0) + before.gpu_hours(pod, start) - before.gpu_hours(other, start)
    return found
