"""Loops that numpy cannot express, compiled to machine code by numba.

Compiled code is cached beside the source, or in the user's cache where that folder is read-only. Where neither is writable, each
process compiles again. Modules with such loops are imported on use: numba takes a third of a second to load.
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
"""A number in a compiled loop. Numba infers its type; a type checker cannot."""

Loop = TypeVar("Loop", bound=Callable[..., object])


def unpack(bundled: Path, kept: Path) -> None:
    """Copy the compiled code of a container image into the cache. Numba reads only from a writable folder."""
    with suppress(OSError), TemporaryDirectory(dir=kept.parent) as draft:  # after a failure numba compiles the code
        shutil.copytree(bundled, Path(draft, "loops")).rename(kept)


if kept := os.environ.get("NUMBA_CACHE_DIR"):
    unpack(Path(sys.prefix, "lib", "loops"), Path(kept))


def compiled(loop: Loop) -> Loop:
    """Return the function as machine code, compiled at its first call. It releases the GIL."""
    return _jit(loop, nogil=True)


def inlined(loop: Loop) -> Loop:
    """Return a function that compiled loops inline. A call would cost more than its work."""
    return _jit(loop, forceinline=True)


def _jit(loop: Loop, **options: Any) -> Loop:
    try:
        return cast(Loop, numba.njit(cache=True, **options)(loop))
    except RuntimeError:  # no writable cache folder
        return cast(Loop, numba.njit(**options)(loop))
