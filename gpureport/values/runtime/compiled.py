"""Loops that numpy has no word for, compiled to machine code by numba.

Compiled code is kept beside the source or, where that cannot be written, in the user's cache; where neither can, each
process compiles anew. Modules with such loops are imported where they are used: numba takes a third of a second to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Number = Any
"""A number within a compiled loop, of the width that its computation gives it: numba shows, and a type checker cannot."""

Loop = TypeVar("Loop", bound=Callable[..., object])


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
