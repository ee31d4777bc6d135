"""Threads and forked processes that work on several parts of a day at once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from gpureport.values.runtime.stopping import abandoned_when_stopped

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
Progress = Callable[[int, int], None]
"""Callback of (tasks done, tasks in all)."""


def no_progress(_done: int, _total: int) -> None:
    """Progress callback that does nothing."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process, for work that mostly waits for DuckDB."""

    count: int

    def each(self, do: Callable[[Task], Outcome], tasks: Sequence[Task], progress: Progress = no_progress) -> list[Outcome]:
        """Return the outcomes in task order. The error of a failed task is raised."""
        with abandoned_when_stopped(ThreadPoolExecutor(self.count)) as pool:
            return _outcomes([pool.submit(do, task) for task in tasks], progress)


@dataclass(frozen=True)
class Processes:
    """Forked processes for Python and numpy work. With a single worker the work runs in this process."""

    count: int

    def each(self, do: Callable[[Task], Outcome], tasks: Sequence[Task], progress: Progress = no_progress) -> list[Outcome]:
        """Return the outcomes in task order. The error of a failed task is raised."""
        workers = min(self.count, len(tasks))
        if workers <= 1:
            return [_done(do, task, number, len(tasks), progress) for number, task in enumerate(tasks, start=1)]
        # Workers fork before this process starts threads: a worker is ready in milliseconds, with all modules imported.
        fork = multiprocessing.get_context("fork")
        with abandoned_when_stopped(ProcessPoolExecutor(workers, mp_context=fork, initializer=_start_worker)) as pool:
            return _outcomes([pool.submit(do, task) for task in tasks], progress)


def _done(do: Callable[[Task], Outcome], task: Task, number: int, total: int, progress: Progress) -> Outcome:
    outcome = do(task)
    progress(number, total)
    return outcome


def _start_worker() -> None:
    """Exit when the parent is killed. Otherwise the worker would hold the lake's lock, inherited with the fork, forever.

    Cyclic garbage collection is off: workers make no cycles, and its search takes a fifth of the time with thousands of series.
    """
    gc.disable()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcomes(futures: Sequence[Future[Outcome]], progress: Progress) -> list[Outcome]:
    """Return all outcomes. After a failure no further task starts."""
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        progress(len(futures) - len(pending), len(futures))
        if any(not future.cancelled() and future.exception() for future in finished):
            for future in pending:
                future.cancel()
    return [future.result() for future in futures]
