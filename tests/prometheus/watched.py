"""Work that leaves a trace of every process that begins a task, and stays at one of them until it is killed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.engines import Engine, Progress, quiet
from gpureport.lake import Change

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Watched:
    """The work of a day's facts; tasks are named by the step and the first part that they read."""

    work: Any
    traces: Path
    stays_at: str

    def reads(self, task: Any, lake_path: Path) -> Sequence[Path]:
        files: Sequence[Path] = self.work.reads(task, lake_path)
        return files

    def do(self, task: Any, change: Change) -> Any:
        name = self._name(task)
        is_first = not list(self.traces.glob(f"{name}.*"))
        (self.traces / f"{name}.{os.getpid()}").touch()
        outcome = self.work.do(task, change)
        if is_first and name == self.stays_at:
            (self.traces / "waits-to-be-killed").write_text(str(os.getpid()))
            time.sleep(PATIENCE_SECONDS)
        return outcome

    def _name(self, task: Any) -> str:
        batch = task[0] if isinstance(task, tuple) else task
        return f"{type(self.work).__name__.strip('_').lower()} of {batch[0].stem}"


@dataclass(frozen=True)
class WatchedEngine:
    """An engine all of whose work is watched."""

    engine: Engine
    traces: Path
    stays_at: str

    def each(self, work: Any, tasks: Sequence[Any], change: Change, progress: Progress = quiet) -> list[Any]:
        return self.engine.each(Watched(work, self.traces, self.stays_at), tasks, change, progress)


def process_that_stays(traces: Path) -> int:
    """Waits for it; its id."""
    file, until = traces / "waits-to-be-killed", time.monotonic() + PATIENCE_SECONDS
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < until, "no process came to the task"
        time.sleep(0.05)
    return int(file.read_text())
