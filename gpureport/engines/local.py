"""The engines of one machine."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass

from gpureport.engines.work import Outcome, Progress, Task, Work, quiet
from gpureport.lake import Change


@dataclass(frozen=True)
class Threads:
    """Threads of this process, for work that waits for DuckDB most of its time."""

    count: int

    def each(self, work: Work[Task, Outcome], tasks: Sequence[Task], change: Change, progress: Progress = quiet) -> list[Outcome]:
        """See ``Engine.each``."""
        with ThreadPoolExecutor(self.count) as pool:
            return _outcomes([pool.submit(work.do, task, change) for task in tasks], progress)


@dataclass(frozen=True)
class Processes:
    """Processes forked from this one, for work of Python and numpy; one alone is this process itself."""

    count: int

    def each(self, work: Work[Task, Outcome], tasks: Sequence[Task], change: Change, progress: Progress = quiet) -> list[Outcome]:
        """See ``Engine.each``."""
        workers = min(self.count, len(tasks))
        if workers <= 1:
            return [_done(work.do, task, change, number, len(tasks), progress) for number, task in enumerate(tasks, start=1)]
        # Forked before this process has threads of its own: a worker is ready in milliseconds, with everything imported.
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, mp_context=fork, initializer=_start_worker) as pool:
            return _outcomes([pool.submit(work.do, task, change) for task in tasks], progress)


def _done(
    do: Callable[[Task, Change], Outcome], task: Task, change: Change, number: int, total: int, progress: Progress
) -> Outcome:
    outcome = do(task, change)
    progress(number, total)
    return outcome


def _start_worker() -> None:
    """A worker ends with a parent that was killed, or it would hold the lake's lock, inherited with the fork, for ever.

    It collects no cycles: it makes none, and looking for them among the labels of thousands of series is a fifth of its time.
    """
    gc.disable()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcomes(futures: Sequence[Future[Outcome]], progress: Progress) -> list[Outcome]:
    """What came of each; after one that failed nothing more is begun."""
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        progress(len(futures) - len(pending), len(futures))
        if any(not future.cancelled() and future.exception() for future in finished):
            for future in pending:
                future.cancel()
    return [future.result() for future in futures]
