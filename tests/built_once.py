"""What many tests read and is slow to make: made by the first worker that needs it, read by all."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest


def built_once(
    name: str, build: Callable[[Path], object], request: pytest.FixtureRequest, factory: pytest.TempPathFactory
) -> Path:
    """The folder that ``build`` has filled; workers of one run share it, two runs never do."""
    is_worker = hasattr(request.config, "workerinput")
    root = factory.getbasetemp().parent if is_worker else factory.getbasetemp()
    folder = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            (folder / "whole").touch()
    return folder
