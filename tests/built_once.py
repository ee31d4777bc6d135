"""Shared test data and servers that are slow to make: the first worker that needs one makes it for all workers."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest


def built_once(
    name: str, build: Callable[[Path], object], request: pytest.FixtureRequest, factory: pytest.TempPathFactory
) -> Path:
    """The folder that ``build`` has filled; workers of one run share it, two runs do not."""
    root = _root(request, factory)
    folder = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            (folder / "whole").touch()
    return folder


@contextmanager
def started_once(
    name: str,
    start: Callable[[Path], AbstractContextManager[str]],
    request: pytest.FixtureRequest,
    factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """URL of a server over an empty folder, started by ``start``; its worker stops it when no other worker uses it."""
    root = _root(request, factory)
    url = root / f"{name}.url"
    with (root / f"{name}.users").open("w") as users, ExitStack() as own:
        fcntl.flock(users, fcntl.LOCK_SH)
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if is_own := not url.exists():
                url.write_text(own.enter_context(start(factory.mktemp(name))))
        yield url.read_text()
        if is_own:
            fcntl.flock(users, fcntl.LOCK_EX)
            url.unlink()


def _root(request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Path:
    is_worker = hasattr(request.config, "workerinput")
    return factory.getbasetemp().parent if is_worker else factory.getbasetemp()
