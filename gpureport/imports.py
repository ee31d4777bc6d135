"""Imports without a search for garbage: they make hundreds of thousands of objects and throw none away."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage within the block: it was a sixth of a command's start."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def imported(name: str) -> ModuleType:
    """A module by its full name."""
    with uncollected():
        return import_module(name)
