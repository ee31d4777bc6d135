"""Threads and forked processes that work on the parts of a day, several at once."""

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

from gpureport.values.runtime.stopping import left_when_stopped

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
Progress = Callable[[int, int], None]
"""Callback of (tasks done, tasks in all)."""


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process, for work that waits for DuckDB most of its time."""

    count: int

    def each(self, do: Callable[[Task], Outcome], tasks: Sequence[Task], progress: Progress = quiet) -> list[Outcome]:
        """Outcomes in order of the tasks; the error of one that fails."""
        with left_when_stopped(ThreadPoolExecutor(self.count)) as pool:
            return _outcomes([pool.submit(do, task) for task in tasks], progress)


@dataclass(frozen=True)
class Processes:
    """Processes forked from this one, for work of Python and numpy; one alone is this process itself."""

    count: int

    def each(self, do: Callable[[Task], Outcome], tasks: Sequence[Task], progress: Progress = quiet) -> list[Outcome]:
        """Outcomes in order of the tasks; the error of one that fails."""
        workers = min(self.count, len(tasks))
        if workers <= 1:
            return [_done(do, task, number, len(tasks), progress) for number, task in enumerate(tasks, start=1)]
        # Forked before this process has threads of its own: a worker is ready in milliseconds, with everything imported.
        fork = multiprocessing.get_context("fork")
        with left_when_stopped(ProcessPoolExecutor(workers, mp_context=fork, initializer=_start_worker)) as pool:
            return _outcomes([pool.submit(do, task) for task in tasks], progress)


def _done(do: Callable[[Task], Outcome], task: Task, number: int, total: int, progress: Progress) -> Outcome:
    outcome = do(task)
    progress(number, total)
    return outcome


def _start_worker() -> None:
    """A worker ends with a parent that was killed, or it would hold the lake's lock, inherited with the fork, for ever.

    It collects no cycles: it makes none, and looking for them among the labels of thousands of series is a fifth of its time.
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
    """Outcomes of all; after one that failed nothing more is begun."""
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        progress(len(futures) - len(pending), len(futures))
        if any(not future.cancelled() and future.exception() for future in finished):
            for future in pending:
                future.cancel()
    return [future.result() for future in futures]
