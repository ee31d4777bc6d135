"""Work that can be done anywhere: each task says which files it reads, and stages what it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from gpureport.lake import Change

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
_Given_contra = TypeVar("_Given_contra", contravariant=True)
_Found_co = TypeVar("_Found_co", covariant=True)

Progress = Callable[[int, int], None]
"""Told (tasks done, tasks in all)."""


class Work(Protocol[_Given_contra, _Found_co]):
    """What is to be done with each of many tasks. It and its tasks and outcomes can be pickled."""

    def reads(self, task: _Given_contra, lake_path: Path) -> Sequence[Path]:
        """The lake's files that the task reads, relative to the lake; ``do`` may find no others there."""

    def do(self, task: _Given_contra, change: Change) -> _Found_co:
        """Read below ``change.lake_path``, stage parts into ``change``; what else is to be known of it.

        Run twice it stages the same parts, so a task whose worker died can be done again.
        """


class Engine(Protocol):
    """What does work, several tasks at once."""

    def each(self, work: Work[Task, Outcome], tasks: Sequence[Task], change: Change, progress: Progress = ...) -> list[Outcome]:
        """Every task's outcome, in order of the tasks, when all parts are staged; the error of one that fails."""


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""
