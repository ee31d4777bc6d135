"""What-if of pods: stop when idle, without unused GPUs, or on MIG instances."""

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
    """Changes to pods."""

    idle_timeout_seconds: float | None = None
    """A pod ends after all its GPUs were idle for this time."""
    returns_idle: bool = False
    """A pod gets only as many GPUs as it ever used; a pod without any use is removed."""
    slices: tuple[tuple[str, str], ...] = ()
    """MIG profiles, each with a pattern of namespace/workload; matching pods get one instance per whole GPU."""

    @property
    def needs_activity(self) -> bool:
        """Return whether the change depends on GPU activity."""
        return self.returns_idle or self.idle_timeout_seconds is not None

    def apply_to(self, scene: Scene) -> Scene:
        """Return the scene with changed pods; UsageError where no pod of a matching workload has a GPU model with the profile."""
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
            raise UsageError(f"--mig {profile} for {pattern}: no pod of such a workload has whole GPUs with this profile")
        return replace(scene, pods=pods)


@cache
def _part(model: str, profile: str) -> float | None:
    """Return one instance as a fraction of a GPU: 1 / maximum number of instances; None where the model lacks the profile."""
    rows = (each for each in mig_profiles() if fnmatchcase(model, each["gpu_model"]) and each["profile"] == profile)
    return next((1 / float(each["instances_max"]) for each in rows), None)


def _stop(pod: Pod, timeout: float) -> float | None:
    """Return the first time at which the pod was idle for the timeout; None where it never was."""
    runs = ((max(since, pod.start or since), min(until, pod.end or inf)) for since, until in pod.use.idle)
    return next((since + timeout for since, until in runs if since + timeout <= until), None)


def parse_duration(text: str, flag: str = "--idle-timeout") -> float:
    """Parse ``2h``, ``90min`` or ``1d`` into s; UsageError for anything else."""
    parts = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(m|min|h|d)", text)
    if not parts or not float(parts[1]):
        raise UsageError(f"{flag} {text!r} is not a duration; write it like 2h, 90min or 1d")
    return float(parts[1]) * _UNITS[parts[2]]


def returned_gpu_hours(before: Scene, after: Scene, starts: Sequence[float | None]) -> dict[str, float]:
    """Return saved GPU-hours of changed pods in the window, by node, for pods that start at these times."""
    found: dict[str, float] = {}
    for pod, other, start in zip(before.pods, after.pods, starts, strict=True):
        if start is not None and pod != other:
            found[pod.node] = found.get(pod.node, 0.0) + before.gpu_hours(pod, start) - before.gpu_hours(other, start)
    return found
