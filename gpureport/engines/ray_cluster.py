"""Work on a Ray cluster: a worker that dies costs the task that it was at, which is done again elsewhere."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from gpureport import __version__
from gpureport.engines.parcel import SAME_IMAGE, do_away, packed, unpack
from gpureport.engines.work import Outcome, Progress, Task, Work, quiet
from gpureport.errors import EngineError, UsageError, first_line
from gpureport.lake import Change

_QUEUED = 2
"""Tasks that wait in the cluster, so that a worker that ends one finds the next, and an autoscaler sees that there are more."""

_KNOCK_SECONDS = 10.0


@dataclass(frozen=True)
class RayCluster:
    """A cluster at an address, or of so many workers on this machine. It is joined when first used, and left with the process."""

    address: str = ""
    workers: int = 2
    at_once: int | None = None
    """No more tasks than these at a time; without it as many as the cluster has cores."""

    def each(self, work: Work[Task, Outcome], tasks: Sequence[Task], change: Change, progress: Progress = quiet) -> list[Outcome]:
        """See ``Engine.each``. UsageError where Ray is not installed, EngineError where the cluster fails."""
        ray = self._joined()
        room = self.at_once or int(ray.cluster_resources().get("CPU", 1)) + _QUEUED
        spread = _Spread(ray, work, tasks, change, room)
        try:
            while spread.is_open():
                progress(spread.advance(), len(tasks))
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ray.exceptions.RayError):
                raise EngineError(f"a worker cannot load the work ({first_line(error.cause)}); {SAME_IMAGE}") from error
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise EngineError(f"the Ray cluster gave a task up ({first_line(error)}); see its logs, then run again") from error
        finally:
            spread.cancel()
        return [spread.outcomes[number] for number in range(len(tasks))]

    def _joined(self) -> Any:
        try:
            import ray
        except ImportError:
            raise UsageError("the engine ray needs Ray, which is not installed; pip install 'gpureport[ray]'") from None
        if not ray.is_initialized():
            self._join(ray)
        return ray

    def _join(self, ray: Any) -> None:
        told: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if not self.address:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a report is nobody else's business
            told |= {"num_cpus": self.workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            _knock(self.address)
            ray.init(self.address or "local", **told)
        except (OSError, RuntimeError, ValueError) as error:
            where = f"at {self.address}" if self.address else "on this machine"
            raise EngineError(f"no Ray cluster {where} ({first_line(error)}); check engine.ray_address") from error


class _Spread(Generic[Task, Outcome]):
    """Tasks on their way: so many in the cluster, the others not yet read from the lake."""

    def __init__(self, ray: Any, work: Work[Task, Outcome], tasks: Sequence[Task], change: Change, room: int) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self._ray, self._work, self._tasks, self._change, self._room = ray, work, tasks, change, room
        self._version, self._shared = ray.put(__version__), ray.put(work)
        self._do = ray.remote(num_cpus=1, max_retries=3)(do_away)
        self._running: dict[Any, int] = {}
        self._sent = 0

    def is_open(self) -> bool:
        """Whether a task is not done yet."""
        return len(self.outcomes) < len(self._tasks)

    def advance(self) -> int:
        """Fill the cluster, wait for a task to end and stage its parts; how many are done."""
        while len(self._running) < self._room and self._sent < len(self._tasks):
            self._send(self._sent)
            self._sent += 1
        (ended,), _ = self._ray.wait(list(self._running), num_returns=1)
        number = self._running.pop(ended)
        self.outcomes[number], staged = self._ray.get(ended)
        unpack(staged, self._change.staging)
        return len(self.outcomes)

    def cancel(self) -> None:
        """What nobody waits for any more is not begun."""
        for each in self._running:
            self._ray.cancel(each)

    def _send(self, number: int) -> None:
        task = self._tasks[number]
        files = packed(self._change.lake_path, self._work.reads(task, self._change.lake_path))
        self._running[self._do.remote(self._version, self._shared, task, self._ray.put(files))] = number


def _knock(address: str) -> None:
    """OSError where nobody listens at host:port; Ray itself tries for minutes, and says so in lines of C++."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), _KNOCK_SECONDS).close()
