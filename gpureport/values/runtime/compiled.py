"""Loops that numpy has no word for, compiled to machine code by numba.

Compiled code is kept beside the source or, where that cannot be written, in the user's cache; where neither can, each
process compiles anew. Modules with such loops are imported where they are used: numba takes a third of a second to load.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numba

Number = Any
"""A number within a compiled loop, of the width of its computation: numba shows, and a type checker cannot."""

Loop = TypeVar("Loop", bound=Callable[..., object])


def unpack(brought: Path, kept: Path) -> None:
    """Put the code that an image brings where it is kept: numba takes it only from a folder that it may write to."""
    with suppress(OSError), TemporaryDirectory(dir=kept.parent) as aside:  # else it is compiled anew
        shutil.copytree(brought, Path(aside, "loops")).rename(kept)


if kept := os.environ.get("NUMBA_CACHE_DIR"):
    unpack(Path(sys.prefix, "lib", "loops"), Path(kept))


def compiled(loop: Loop) -> Loop:
    """The same function as machine code, compiled when it is first called; it lets other threads run meanwhile."""
    return _jit(loop, nogil=True)


def inlined(loop: Loop) -> Loop:
    """A part of compiled loops, put in where it is called: a call would cost more than what it does."""
    return _jit(loop, forceinline=True)


def _jit(loop: Loop, **options: Any) -> Loop:
    try:
        return cast(Loop, numba.njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder to keep it in
        return cast(Loop, numba.njit(**options)(loop))
